"""Starting programs: what the child sees, what the parent keeps, and when it is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import PlatformError, UsageError
from hotbed.gpu import find_gpu
from hotbed.phantom import environment, phantom_folder, spec_string, start
from hotbed.phantom.control import Control, PhantomError

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.gpu import Gpu

COUNT = """
import ctypes, os
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuInit(0)
cuda.cuDeviceGetCount(ctypes.byref(count))
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
print(count.value, total.value, total.value - free.value, os.environ["HOTBED_PHANTOM"])
"""


def seen(
    *, env: dict[str, str] | None = None, gpu: Gpu | None = None, count: int = 1, context: bool = False
) -> list[int]:
    """What a child sees: number of GPUs, memory, memory in use, HOTBED_PHANTOM."""
    argv = [sys.executable, "-c", COUNT]
    child = start(argv, gpu=gpu, count=count, context=context, env=env, stdout=subprocess.PIPE, text=True)
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    return [int(word) for word in output.split()]


def test_the_child_sees_the_gpu_that_was_asked_for() -> None:
    t4 = find_gpu("t4")
    assert seen(gpu=t4, count=3) == [3, t4.total_bytes, 0, 1]
    assert seen() == [1, find_gpu("h200").total_bytes, 0, 1]


def test_a_context_takes_memory_only_when_asked_for() -> None:
    gpu = replace(find_gpu("h200"), context_bytes=518 << 20)
    assert seen(gpu=gpu, context=True)[2] == 518 << 20
    assert seen(gpu=gpu)[2] == 0


def test_this_process_and_its_environment_stay_as_they_were() -> None:
    before = dict(os.environ)
    seen()
    assert dict(os.environ) == before
    with pytest.raises(PhantomError, match="is not hotbed's phantom"):
        Control()


def test_the_environment_keeps_what_was_preloaded_before() -> None:
    base = {"LD_PRELOAD": "/opt/other.so", "LD_LIBRARY_PATH": "/opt/lib", "PATH": "/bin"}
    child = environment(base=base)
    folder = phantom_folder()
    assert child["LD_PRELOAD"] == f"{folder}/libcuda.so.1:{folder}/hotbed-libraries.so:/opt/other.so"
    assert child["LD_LIBRARY_PATH"] == f"{phantom_folder()}:/opt/lib"
    assert environment(base=child)["LD_PRELOAD"] == child["LD_PRELOAD"]
    assert base == {"LD_PRELOAD": "/opt/other.so", "LD_LIBRARY_PATH": "/opt/lib", "PATH": "/bin"}


def test_a_folder_with_a_blank_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(phantom_folder(), tmp_path / "my files" / "phantom")
    monkeypatch.setenv("HOTBED_NATIVE_DIR", str(tmp_path / "my files"))
    assert seen()[0] == 1


def test_a_spec_leaves_out_what_nobody_knows() -> None:
    gpu = replace(find_gpu("h200"), name="A;B", sm_count=None, compute_capability=(12, 0), context_bytes=7)
    pairs = dict(pair.split("=") for pair in spec_string(gpu).split(";"))
    assert pairs["name"] == "A B"
    assert pairs["cc"] == "120"
    assert "sm" not in pairs
    assert "context" not in pairs
    assert "context=7" in spec_string(gpu, context=True).split(";")


def test_privileged_programs_are_refused(tmp_path: Path) -> None:
    program = tmp_path / "python"
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    with pytest.raises(PlatformError, match="raised privileges"):
        start([str(program)])


def test_what_cannot_be_started_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'no-such-program' is not a program"):
        start(["no-such-program"])
    with pytest.raises(UsageError, match="65 phantom GPUs"):
        environment(count=65)
    monkeypatch.setenv("HOTBED_NATIVE_DIR", str(tmp_path))
    with pytest.raises(PlatformError, match="the phantom GPU is not built"):
        environment()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(PlatformError, match="the phantom GPU needs Linux") as error:
        environment()
    assert error.value.hint
    assert "Linux container" in error.value.hint
