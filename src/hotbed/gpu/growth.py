"""Measures what torch's CUDA libraries add to a process, beside what its allocator holds, step by step in a child."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed.errors import PlatformError
from hotbed.gpu.live import live_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEPS = Path(__file__).with_name("growth_steps.py")
# Not `python FILE`: that would put this folder, which has a cuda.py, before the packages of the interpreter.
_RUN = "import runpy, sys; sys.path = [folder for folder in sys.path if folder]; runpy.run_path({!r}, run_name='__main__')"
_NO_TORCH = "ModuleNotFoundError: No module named 'torch'"


@dataclass(frozen=True)
class Growth:
    """Device memory that a process takes beside its allocator, with one torch and cuDNN on one card.

    `added_bytes` are (what was used for the first time, bytes that it added); "cublas handle" and "cudnn handle" are those of
    one more thread. `cudnn` is what cuDNN said of the device, under the names of CudnnDevice, or {"failed": why}.
    """

    torch_version: str
    cudnn_version: int | None
    context_bytes: int
    added_bytes: tuple[tuple[str, int], ...]
    failed: tuple[tuple[str, str], ...]
    cudnn: dict[str, Any]


def measure_growth(uuid: str, device: int, python: str | None = None) -> Growth:
    """Uses the libraries of the torch of `python` (None: this interpreter) on the device, NVML's `uuid`.

    Takes as long as importing torch and some seconds. Raises PlatformError without torch, when NVML gives no
    figures, or when the child fails.
    """
    before = _used_bytes(uuid, None)
    command = [python or sys.executable, "-c", _RUN.format(str(_STEPS)), str(device)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        try:
            lines = list(_steps(child, uuid, before))
            errors = child.stderr.read()
        finally:
            child.kill()
    if _NO_TORCH in errors:
        raise PlatformError("that interpreter has no torch; name another one with --torch")
    if not lines or "cudnn_device" not in lines[-1]:
        words = errors.strip().splitlines()
        raise PlatformError(f"using torch on the device failed: {words[-1] if words else 'no word why'}")
    return _growth(lines)


def _steps(child: subprocess.Popen[str], uuid: str, before: int) -> Iterator[dict[str, Any]]:
    """What the child says, each step with the bytes that the process then has beside its allocator in `beside_bytes`."""
    assert child.stdin is not None
    assert child.stdout is not None
    for line in child.stdout:
        said = json.loads(line)
        if "step" in said:
            said["beside_bytes"] = _used_bytes(uuid, child.pid, before) - said["reserved_bytes"]
            child.stdin.write("\n")
            child.stdin.flush()
        yield said


def _growth(lines: list[dict[str, Any]]) -> Growth:
    versions, *steps, last = lines
    added = {}
    for before, after in pairwise(steps):
        grown = max(0, after["beside_bytes"] - before["beside_bytes"])
        if not after["failed"]:
            added[after["step"]] = grown
    return Growth(
        torch_version=versions["torch"],
        cudnn_version=versions["cudnn"],
        context_bytes=steps[0]["beside_bytes"],
        added_bytes=tuple(added.items()),
        failed=tuple((step["step"], step["failed"]) for step in steps if step["failed"]),
        cudnn=last["cudnn_device"],
    )


def _used_bytes(uuid: str, pid: int | None, before: int = 0) -> int:
    """NVML's figure for the process `pid`; where the driver hides it, or for None, that of the GPU less `before`."""
    gpu = next((gpu for gpu in live_gpus() if gpu.uuid == uuid), None)
    if gpu is None or gpu.used_bytes is None:
        raise PlatformError("NVML does not say how much memory of this GPU is in use")
    own = [process.used_bytes for process in gpu.processes or () if process.pid == pid]
    return own[0] if own and own[0] is not None else gpu.used_bytes - before
