"""Runs programs with the real torch on the phantom GPU.

A server started on the phantom imports torch once and forks a child for each program, as replay does: a test costs
milliseconds instead of seconds.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.forking import PYTHONS

from hotbed.gpu import find_gpu
from hotbed.phantom import control, environment, start
from hotbed.units import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = f"""
import ctypes, importlib.util, json, os, sys, threading, warnings
warnings.simplefilter("ignore")
spec = importlib.util.spec_from_file_location("control", {control.__file__!r})
control = sys.modules["control"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(control)
phantom = control.Control()
import torch, torch._dynamo

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
version = tuple(int(part) for part in torch.__version__.split(".")[:2])
cuda = ctypes.CDLL("libcuda.so.1")
give_back = torch._C._cuda_cudaCachingAllocator_raw_delete

def device_bytes(size, stream=0):
    return torch._C._cuda_cudaCachingAllocator_raw_alloc(size, stream)

def stat(name):
    return torch.cuda.memory_stats().get(name, 0)

def reserved():
    return stat("reserved_bytes.all.current")

def allocated():
    return stat("allocated_bytes.all.current")

def used(device=0):
    return phantom.counters(device).used_bytes

def fails(call, *arguments):
    try:
        call(*arguments)
    except torch.cuda.OutOfMemoryError:
        return True
    return False

def answer(**values):
    print(json.dumps(values), flush=True)

for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit()
os.environ.update(job["env"])
for number, path in ((1, job["stdout"]), (2, job["stderr"])):
    os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), number)
torch.cuda.init()
exec(compile(job["program"], "program", "exec"))
if not job["to_its_end"]:
    # The end of an interpreter with torch costs more than the program.
    sys.stderr.flush()
    os._exit(0)
"""


@dataclass(frozen=True)
class Finished:
    """A program that has ended: what it gave to answer(...), as attributes, and its stderr."""

    answer: dict[str, Any]
    stderr: str

    def __getattr__(self, name: str) -> Any:
        return self.answer[name]


@dataclass
class Server:
    """Forks programs from a process that has imported one torch on the phantom."""

    process: subprocess.Popen[str]
    folder: Path
    programs: int = 0

    def __call__(
        self,
        program: str,
        *,
        total: int = 16 * GIB,
        count: int = 1,
        others: int = 0,
        settings: str = "",
        env: dict[str, str] | None = None,
        to_its_end: bool = False,
    ) -> Finished:
        """Runs `program` on `count` GPUs of `total` bytes, of which another process holds `others`, after torch.cuda.init();
        it must succeed.

        With `to_its_end` its process ends as an interpreter does.
        """
        gpu = replace(find_gpu("h200"), total_bytes=total, nvml_total_bytes=None)
        phantom_env = environment(gpu, count=count, others=others)
        wanted = {key: value for key, value in phantom_env.items() if key.startswith("HOTBED_")}
        wanted |= {"PYTORCH_CUDA_ALLOC_CONF": settings, **(env or {})}
        self.programs += 1
        out, err = self.folder / f"{self.programs}.out", self.folder / f"{self.programs}.err"
        job = {
            "program": program,
            "env": wanted,
            "to_its_end": to_its_end,
            "stdout": str(out),
            "stderr": str(err),
        }
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        status = self.process.stdout.readline().strip()
        assert status == "0", err.read_text()
        return Finished(json.loads(out.read_text().splitlines()[-1]), err.read_text())


@pytest.fixture(scope="session", params=PYTHONS, ids=lambda python: Path(python).parent.parent.name)
def on_phantom(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Runs a program with torch on the phantom; once for each interpreter in PYTHONS."""
    argv = [request.param, "-c", SERVER]
    with start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Server(process, tmp_path_factory.mktemp("programs"))
        process.stdin.close()
    assert process.returncode == 0
