"""The host side of replay: owns the worker processes, sends them programs and jobs, hands back raw results."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed import phantom
from hotbed.errors import InternalError, TorchError
from hotbed.phantom import control
from hotbed.replaying import frames
from hotbed.replaying.program import Program, runs_of

if TYPE_CHECKING:
    from array import array
    from types import TracebackType

    from hotbed.gpu import Gpu
    from hotbed.trace.model import PoolId

_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Job:
    """One replay. `addresses`: "recorded" (the recorded ones while the sizes agree, then the driver's rule),
    "ascending", "descending" or "driver"; up to torch 2.11 they decide ties between equal blocks."""

    settings: str = ""
    cap_bytes: int | None = None
    addresses: str = "recorded"
    stop_op: int | None = None
    """execute up to and including this op only"""
    snapshot_path: str | None = None
    """write torch's memory snapshot there at the end"""
    history: bool = False
    """let torch record its own event history for the snapshot"""


@dataclass(frozen=True)
class RawResult:
    """What one replay counted: torch's own statistics and the phantom's."""

    failed_op: int | None
    total_bytes: int
    seconds: float
    stats: dict[str, int]
    counters: control.Counters
    marks: tuple[control.Counters, ...]
    refused: tuple[int, ...] = ()
    """ops of the kind TRIED_ALLOC that were not served"""
    pools: tuple[PoolId, ...] = ()
    """the ids that the program's pools had in the replay"""


class Engine:
    """A worker that imported one torch on one phantom GPU, and forks a child per job. Thread-safe.

    Use as a context manager. `backend` must be known before torch starts, so each backend needs its own Engine.
    Raises TorchError when the interpreter has no torch with CUDA.
    """

    def __init__(
        self,
        gpu: Gpu,
        *,
        python: str | None = None,
        backend: str = "native",
        parallel: int | None = None,
    ) -> None:
        self.parallel = parallel or available_cores()
        # Two locks: the reader must never wait for a sender, who may wait for the worker, who waits for the reader.
        self._sending = threading.Lock()
        self._lock = threading.Lock()
        """guards _futures"""
        self._futures: dict[int, Future[dict[str, Any]]] = {}
        self._programs: dict[int, tuple[Program, int]] = {}
        self._next_id = 0
        self._process, self._connection = _start(gpu, python or sys.executable, backend, self.parallel)
        self.torch_version = self._greet(python or sys.executable)
        self._reader = threading.Thread(target=self._read_results, daemon=True)
        self._reader.start()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up; the worker ends its children and itself."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        self._process.wait()

    def run(self, program: Program, job: Job) -> RawResult:
        """Replays `program` once and waits for it. Raises TorchError with torch's words if torch refuses."""
        return raw_result(self.submit(program, job).result(), job)

    def submit(self, program: Program, job: Job) -> Future[dict[str, Any]]:
        """Queues one replay; the future holds the worker's message."""
        future: Future[dict[str, Any]] = Future()
        with self._sending:
            number = self._program_id(program)
            self._next_id += 1
            with self._lock:
                self._futures[self._next_id] = future
            self._send(
                {
                    "type": "job",
                    "id": self._next_id,
                    "program": number,
                    "settings": job.settings,
                    "cap_bytes": job.cap_bytes,
                    "addresses": job.addresses,
                    "stop_op": job.stop_op,
                    "snapshot": job.snapshot_path,
                    "history": job.history,
                }
            )
        return future

    def _program_id(self, program: Program) -> int:
        found = self._programs.get(id(program))
        if found is not None:
            return found[1]
        number = len(self._programs) + 1
        # Keeping the program keeps its id() from being reused.
        self._programs[id(program)] = (program, number)
        self._send(*_program_message(program, number))
        return number

    def _send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        try:
            frames.send(self._connection, message, blob)
        except OSError as error:
            raise InternalError(f"the replay worker is gone ({error})", hint="run it again") from None

    def _greet(self, python: str) -> str:
        message = self._receive()
        if message is None or message["type"] != "ready":
            self.close()
            why = message["message"] if message else f"the replay worker ended at start ({python})"
            raise TorchError(
                f"cannot replay with {python}: {why}",
                hint='install a CUDA build of torch (no GPU needed): pip install "hotbed[torch]"',
            )
        return str(message["torch"])

    def _receive(self) -> dict[str, Any] | None:
        """The worker's next message; None when it is gone, even in the middle of a message (ValueError)."""
        try:
            frame = frames.receive(self._connection)
        except (OSError, ValueError):
            return None
        return None if frame is None else frame[0]

    def _read_results(self) -> None:
        while (message := self._receive()) is not None:
            with self._lock:
                future = self._futures.pop(message["id"])
            future.set_result(message)
        with self._lock:
            lost = list(self._futures.values())
        for future in lost:
            future.set_result({"error": "the replay worker ended early"})


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(
    gpu: Gpu, python: str, backend: str, parallel: int
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    environment = {**os.environ}
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"):
        environment.pop(name, None)
    # The phantom shows one device whatever the user's shell hides.
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    if backend != "native":
        environment["PYTORCH_CUDA_ALLOC_CONF"] = f"backend:{backend}"
    try:
        process = phantom.start(
            [python, str(_WORKER), str(theirs.fileno()), control.__file__, str(parallel)],
            gpu=gpu,
            context=True,
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        theirs.close()
    return process, ours


def _program_message(program: Program, number: int) -> tuple[dict[str, Any], bytes]:
    columns = {
        "allocation": program.allocation,
        "size": program.size,
        "pool": program.pool,
        **runs_of(program),
    }
    blob = b"".join(column.tobytes() for column in columns.values())
    described = {name: [column.typecode, _bytes_of(column)] for name, column in columns.items()}
    message = {
        "type": "program",
        "id": number,
        "allocations": program.allocations,
        "pools": program.pools,
        "segments": program.segments,
        "columns": described,
    }
    return message, blob


def _bytes_of(column: array[int]) -> int:
    return len(column) * column.itemsize


def raw_result(message: dict[str, Any], job: Job) -> RawResult:
    """The worker's message as a RawResult. Raises TorchError with torch's words if it refused the job."""
    if "error" in message:
        raise TorchError(f"replay of {job.settings or 'default settings'!r} failed: {message['error']}")
    return RawResult(
        failed_op=message["failed_op"],
        total_bytes=message["total_bytes"],
        seconds=message["seconds"],
        stats=message["stats"],
        counters=control.Counters(*message["counters"]),
        marks=tuple(control.Counters(*values) for values in message["marks"]),
        refused=tuple(message["refused"]),
        pools=tuple((first, second) for first, second in message["pools"]),
    )
