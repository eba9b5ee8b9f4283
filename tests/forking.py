"""Runs what hotbed starts on phantom GPUs in forks of a process that has imported torch: a test need not pay for that.

A program gets a process with the session, descriptors, environment and working folder that it asks for, in which its
own `import torch` finds the module there. What would change the import itself starts in a new interpreter: `_same`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed import phantom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Interpreters whose torch is tested: this one, and those that HOTBED_TEST_PYTHONS names, separated by colons.
PYTHONS = [sys.executable, *filter(None, os.environ.get("HOTBED_TEST_PYTHONS", "").split(":"))]
# torch imports the second for the first optimizer.
TORCH = ("torch", "torch._dynamo")
# What torch and the phantom read when CUDA is first used, and what only tells tests apart.
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_READ_LATE = (
    *_ALLOCATOR,
    "HOTBED_",
    "CUDA_VISIBLE_DEVICES",
    "PYTEST_",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "COLUMNS",
)
_SERVER = Path(__file__).with_name("fork_server.py")
_start = phantom.start


class Forked:
    """A process of a server, as subprocess.Popen shows its own."""

    def __init__(self, argv: Sequence[str], connection: socket.socket) -> None:
        self.args, self._connection = argv, connection
        self._lock = threading.Lock()
        self.returncode: int | None = None
        self.pid = int(connection.recv(64))

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            if self.returncode is None:
                self._connection.settimeout(timeout)
                try:
                    self.returncode = int(self._connection.recv(64))
                except (BlockingIOError, TimeoutError):
                    raise subprocess.TimeoutExpired(list(self.args), timeout or 0) from None
                self._connection.close()
            return self.returncode


@dataclass(frozen=True)
class Server:
    """Where one listens, and the environment that it was started with."""

    address: str
    environment: dict[str, str]

    def fork(self, argv: Sequence[str], env: Mapping[str, str], **popen: Any) -> Forked:
        """A process that runs `argv` without the interpreter, as subprocess.Popen would start it."""
        with open(os.devnull, "r+b", buffering=0) as null:
            passed = {number: number for number in popen.get("pass_fds", ())}
            for number, name in enumerate(("stdin", "stdout", "stderr")):
                stream = popen.get(name)
                passed[number] = number if stream is None else _descriptor(stream, null)
            request = {
                "argv": list(map(str, argv)),
                "env": dict(env),
                "cwd": str(popen.get("cwd") or Path.cwd()),
                "session": popen.get("start_new_session", False),
                "numbers": list(passed),
            }
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            connection.connect(self.address)
            socket.send_fds(connection, [json.dumps(request).encode()], list(passed.values()))
        return Forked(argv, connection)


def _descriptor(stream: Any, null: Any) -> int:
    if stream == subprocess.DEVNULL:
        return int(null.fileno())
    return stream if isinstance(stream, int) else int(stream.fileno())


@contextmanager
def serving(address: Path, python: str, modules: Sequence[str], env: dict[str, str]) -> Iterator[Server]:
    """Within the block a server listens at `address`; who asks before it has imported `modules` waits."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(address))
        listening.listen()
        argv = [python, str(_SERVER), str(listening.fileno()), *modules]
        process = subprocess.Popen(argv, env=env, pass_fds=[listening.fileno()], stdout=subprocess.DEVNULL)
    try:
        yield Server(str(address), env)
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Forks:
    """One server with torch on the phantom for each interpreter."""

    servers: dict[str, Server]

    @staticmethod
    def from_json(text: str) -> Forks:
        return Forks({python: Server(**one) for python, one in json.loads(text).items()})

    def to_json(self) -> str:
        return json.dumps({python: asdict(one) for python, one in self.servers.items()})

    def start(
        self,
        argv: Sequence[str],
        *,
        gpu: Any = None,
        count: int = 1,
        context: bool = False,
        env: Mapping[str, str] | None = None,
        **popen: Any,
    ) -> Any:
        """Stands for hotbed.phantom.start."""
        child = phantom.environment(gpu, count=count, context=context, base=env)
        server = self.servers.get(argv[0])
        if server is None or not argv[1].endswith(".py") or not _same(server.environment, child):
            return _start(argv, gpu=gpu, count=count, context=context, env=env, **popen)
        return server.fork(argv[1:], child, **popen)


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether torch could not tell from these environments, when it is imported, in which of them it is."""
    names = {name for name in {*one, *other} if one.get(name) != other.get(name)}
    settings = " ".join(other.get(name, "") for name in _ALLOCATOR)
    return all(name.startswith(_READ_LATE) for name in names) and "backend" not in settings
