"""Executed by path: imports once what tests need again and again, and forks a process for each program that they run.

argv: descriptor of a listening Unix socket, then the modules to import. Each connection asks for one program with
{"argv", "env", "cwd", "session", "numbers"} and the descriptors that it gets under those numbers, and is told its
process id and, once it has ended, its return code as subprocess.Popen gives it.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.machinery
import json
import os
import runpy
import selectors
import socket
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

_HIGH = 1000
"""descriptors from here on are nobody's"""


class Given:
    """Finder and loader of a module that was imported before: the program's first import of it finds it anew."""

    def __init__(self, name: str) -> None:
        self.name, self.module = name, sys.modules.pop(name)

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, _: object) -> Any:
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module: Any) -> None:
        module.__spec__, module.__loader__ = self.spec, self.spec.loader


def become(request: dict[str, Any], passed: list[int]) -> None:
    """Makes this forked child the process that `request` asks for, and ends it."""
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, _HIGH) for number in passed]
    os.closerange(3, _HIGH)
    for source, number in zip(high, request["numbers"], strict=True):
        os.dup2(source, number)
    os.closerange(_HIGH, _HIGH + 2 * len(high))
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    os._exit(status_of(request["argv"]))


def status_of(argv: list[str]) -> int:
    """Runs the program as `python *argv` does; its exit status."""
    try:
        try:
            if argv[0] == "-m":
                sys.argv = argv[1:]
                runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
            else:
                sys.argv = argv
                sys.path.insert(0, str(Path(argv[0]).parent))
                runpy.run_path(argv[0], run_name="__main__")
        finally:
            sys.stdout.flush()
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
        return 1
    return 0


class Server:
    """The process that imported the modules, and the programs that it forked."""

    def __init__(self, listening: socket.socket, modules: list[str]) -> None:
        self.listening, self.modules = listening, modules
        self.running: dict[int, tuple[int, socket.socket]] = {}
        """descriptor of the process → its id, and who asked for it"""
        # Without a descriptor of its own.
        self.selector = selectors.PollSelector()
        self.selector.register(listening, selectors.EVENT_READ)

    def serve(self) -> None:
        """Until it is killed."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listening:
                    self.start(self.listening.accept()[0])
                else:
                    self.end(key.fd)

    def start(self, connection: socket.socket) -> None:
        body, passed, _, _ = socket.recv_fds(connection, 1 << 20, 64)
        request = json.loads(body)
        process = os.fork()
        if process == 0:
            for one in (self.listening, connection, *(asking for _, asking in self.running.values())):
                one.detach()
            if "torch" in self.modules:
                sys.meta_path.insert(0, Given("torch"))
            become(request, list(passed))
        for number in passed:
            os.close(number)
        connection.send(str(process).encode())
        descriptor = os.pidfd_open(process)
        self.running[descriptor] = process, connection
        self.selector.register(descriptor, selectors.EVENT_READ)

    def end(self, descriptor: int) -> None:
        process, connection = self.running.pop(descriptor)
        self.selector.unregister(descriptor)
        os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with connection:
            connection.send(str(status).encode())


def main() -> None:
    listening = socket.socket(fileno=int(sys.argv[1]))
    modules = sys.argv[2:]
    sys.path.pop(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules:
            importlib.import_module(module)
    Server(listening, modules).serve()


if __name__ == "__main__":
    main()
