"""Runs programs through the torch of the interpreter that executes this file, one forked child per job.

Executed by path on a phantom GPU, possibly by a Python without hotbed: imports the stdlib, torch, and by their paths
frames.py, execution.py and control.py. Messages on the socket whose descriptor is the first argument:
  in:  {"type": "program", "id", "allocations", "pools", "segments", "columns": {name: [typecode, bytes]}} + blob
       {"type": "job", "id", "program", "settings", "cap_bytes", "addresses", "stop_op", "snapshot", "history"}
  out: {"type": "ready", "torch"} or {"type": "unusable", "message"}, once
       {"type": "result", "id", ...} for each job, in the order in which they end
"""

from __future__ import annotations

import importlib.util
import json
import os
import selectors
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class Worker:
    """The process that imported torch once: forks a child for each job, as many at a time as allowed."""

    def __init__(
        self, connection: socket.socket, frames: Any, torch: Any, control: Any, parallel: int
    ) -> None:
        self.connection, self.frames, self.torch, self.control = connection, frames, torch, control
        self.parallel = parallel
        self.execution = load(FOLDER / "execution.py")
        self.programs: dict[int, Any] = {}
        self.waiting: list[dict[str, Any]] = []
        self.children: dict[int, tuple[int, int, int, list[bytes]]] = {}
        """read end of the result pipe → (job id, process id, stderr memory file, parts read so far)"""
        self.selector = selectors.DefaultSelector()
        self.selector.register(connection, selectors.EVENT_READ)

    def serve(self) -> None:
        """Until the host hangs up."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.connection:
                    if not self.accept():
                        return
                else:
                    self.read_child(key.fd)
            while self.waiting and len(self.children) < self.parallel:
                self.start(self.waiting.pop(0))

    def accept(self) -> bool:
        frame = self.frames.receive(self.connection)
        if frame is None:
            return False
        message, blob = frame
        if message["type"] == "program":
            self.programs[message["id"]] = self.execution.Program(message, blob)
        else:
            self.waiting.append(message)
        return True

    def start(self, job: dict[str, Any]) -> None:
        read_end, write_end = os.pipe()
        errors = os.memfd_create("stderr")
        process = os.fork()
        if process == 0:
            # With a reading end of its own it would wait for ever when the worker is gone.
            for inherited in (read_end, *self.children, self.connection.fileno()):
                os.close(inherited)
            self.be_child(job, write_end, errors)
        os.close(write_end)
        self.children[read_end] = (job["id"], process, errors, [])
        self.selector.register(read_end, selectors.EVENT_READ)

    def be_child(self, job: dict[str, Any], write_end: int, errors: int) -> None:
        os.dup2(errors, 2)
        try:
            program = self.programs[job["program"]]
            result = self.execution.run_job(self.torch, self.control, program, job)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the host must hear of it
            result = {"error": f"{type(error).__name__}: {error}"}
        try:
            with os.fdopen(write_end, "wb") as pipe:
                pipe.write(json.dumps(result).encode())
        finally:
            # No interpreter shutdown: freeing a torch process costs more than the replay.
            os._exit(0)

    def read_child(self, read_end: int) -> None:
        part = os.read(read_end, 1 << 16)
        job_id, process, errors, parts = self.children[read_end]
        if part:
            parts.append(part)
            return
        self.selector.unregister(read_end)
        os.close(read_end)
        del self.children[read_end]
        status = os.waitpid(process, 0)[1]
        body = b"".join(parts)
        result = json.loads(body) if body else {"error": self.describe_death(status, errors)}
        os.close(errors)
        self.frames.send(self.connection, {**result, "type": "result", "id": job_id})

    def describe_death(self, status: int, errors: int) -> str:
        text = os.pread(errors, 1 << 16, 0).decode(errors="replace").strip().splitlines()
        last = f": {text[-1]}" if text else ""
        if os.WIFSIGNALED(status):
            return f"the replay process was killed by {signal.Signals(os.WTERMSIG(status)).name}{last}"
        return f"the replay process exited with status {os.WEXITSTATUS(status)}{last}"

    def stop_children(self) -> None:
        for _, process, _, _ in self.children.values():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def load(path: str | Path) -> Any:
    """A module of hotbed, by path: this interpreter may have no hotbed."""
    spec = importlib.util.spec_from_file_location(f"hotbed_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def import_torch() -> tuple[Any, str | None]:
    """(torch, None) or (None, why this interpreter cannot replay)."""
    try:
        import torch
    except (ImportError, OSError, RuntimeError) as error:
        # OSError: a library that torch loads by itself is missing.
        return None, f"no torch: {error}"
    if torch.version.cuda is None:
        return None, f"torch {torch.__version__} is built without CUDA"
    return torch, None


def main() -> None:
    """argv: socket descriptor, path of control.py, number of children at a time."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    frames = load(FOLDER / "frames.py")
    # The host decides what Ctrl-C means; it hangs up when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    # Started by path: modules beside this file would come before the user's.
    sys.path = [folder for folder in sys.path if folder != str(Path(__file__).parent)]
    torch, problem = import_torch()
    if problem is not None:
        frames.send(connection, {"type": "unusable", "message": problem})
        return
    control = load(sys.argv[2]).Control()
    frames.send(connection, {"type": "ready", "torch": torch.__version__, "python": sys.version.split()[0]})
    worker = Worker(connection, frames, torch, control, int(sys.argv[3]))
    try:
        worker.serve()
    finally:
        # Also when the host went away in the middle of a message.
        worker.stop_children()
    # The host waits for this; taking torch down would be a second for nothing.
    os._exit(0)


if __name__ == "__main__":
    main()
