"""`hotbed phantom`, as typed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def hotbed(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs `hotbed phantom ARGS` in a process of its own."""
    command = [sys.executable, "-m", "hotbed", "phantom", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=cwd)


def test_run_passes_arguments_output_and_status_through() -> None:
    result = hotbed(
        "run",
        "--gpu",
        "t4",
        "--",
        sys.executable,
        "-c",
        "import sys; print(sys.argv); sys.exit(7)",
        "--gpu",
        "x",
    )
    assert result.returncode == 7
    assert result.stdout == "['-c', '--gpu', 'x']\n"


def test_run_ends_by_the_signal_that_ends_the_program() -> None:
    result = hotbed("run", sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert result.returncode == -signal.SIGTERM


def test_run_gives_the_memory_that_was_asked_for() -> None:
    code = (
        "import ctypes; c = ctypes.CDLL('libcuda.so.1'); t = ctypes.c_size_t(); "
        "c.cuDeviceTotalMem_v2(ctypes.byref(t), 0); print(t.value)"
    )
    assert hotbed("run", "--total", "15GiB", "--", sys.executable, "-c", code).stdout == f"{15 << 30}\n"


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["run", "--gpu", "gtx1"], 2, "Missing argument"),
        (["run", "--gpu", "gtx1", "true"], 2, "no GPU called 'gtx1'"),
        (["run", "--gpus", "0", "true"], 2, "0 phantom GPUs are not possible"),
        (["run", "no-such-program"], 2, "is not a program"),
        (["check", "--torch", "/no/such/python"], 1, "/no/such/python"),
    ],
)
def test_mistakes_are_one_clear_line(args: list[str], status: int, words: str) -> None:
    result = hotbed(*args)
    assert result.returncode == status
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.torch
def test_check_finds_every_entry_point_of_the_installed_torch() -> None:
    result = hotbed("check", "--json")
    found = json.loads(result.stdout)
    assert result.returncode == 0
    assert found["uncovered"] == []
    assert {"cudaMalloc", "cuMemCreate", "nvmlInit_v2"} <= set(found["modelled"])
    assert "cudaIpcGetMemHandle" in found["stubs"]


def test_nvml_shows_the_phantom() -> None:
    result = hotbed("nvml", "--gpu", "h200", "--gpus", "2", "--json")
    gpus = json.loads(result.stdout)["gpus"]
    assert [gpu["index"] for gpu in gpus] == [0, 1]
    assert {gpu["name"] for gpu in gpus} == {"NVIDIA H200"}
    # The H200 of the ground truth: 143771 MiB in NVML, 143155 in CUDA; the rest is the driver's.
    assert gpus[0]["total_bytes"] == 143771 << 20
    assert gpus[0]["used_bytes"] == (143771 << 20) - 150109880320
    assert "NVIDIA H200" in hotbed("nvml").stdout


@pytest.mark.parametrize("verb", ["nvml", pytest.param("check", marks=pytest.mark.torch)])
def test_modules_in_the_working_folder_are_not_run(verb: str, tmp_path: Path) -> None:
    """A folder from somebody else may hold anything."""
    for name in ("json", "pynvml", "torch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)")
    result = hotbed(verb, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
