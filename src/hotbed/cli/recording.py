"""What `hotbed record` does once its options are read: the program's process, and its file when that is over."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed import phantom, recording
from hotbed.cli.printer import note, print_json
from hotbed.cli.recording_file import compacted, line, to_json
from hotbed.cli.recording_request import Request, job, path_of, program_of
from hotbed.errors import PlatformError, UsageError
from hotbed.gpu.live import live_gpus
from hotbed.recording.files import make_room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.predicting.program import Program

_BOOT = Path(recording.__file__).parent / "boot.py"


def answer(request: Request) -> int:
    """Runs the program, rewrites its file compactly, says what is in it. Returns the exit status: 0, or 3 if it failed."""
    if request.gpu_name and not request.phantom:
        raise UsageError("--gpu is for --phantom: a real GPU is what it is")
    program = program_of(request)
    if not request.phantom:
        _refuse_without_gpu(request)
    path = path_of(request)
    make_room(path)
    status = _run(request, program, path)
    traces = compacted(path)
    if request.as_json:
        print_json(to_json(path, status, traces))
    else:
        note(line(path, traces))
    return 3 if status else int(not traces)


def _refuse_without_gpu(request: Request) -> None:
    try:
        found = bool(live_gpus())
    except PlatformError:
        found = _has_driver()
    if not found:
        raise PlatformError(
            "this machine has no NVIDIA GPU, or no driver for it",
            hint=f"hotbed record --phantom --gpu h100-80 {request.program} records it on a GPU that is not there",
        )


def _has_driver() -> bool:
    """NVML is missing on some systems that have CUDA."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _run(request: Request, program: Program, path: Path) -> int:
    """Exit status of the program; negative for a signal."""
    with tempfile.TemporaryDirectory(prefix="hotbed-record-") as folder:
        (Path(folder) / "job.json").write_text(json.dumps(job(request, program, path)))
        argv = [program.python or sys.executable, str(_BOOT), folder]
        sys.stdout.flush()
        out = 2 if request.as_json else None
        if request.phantom:
            process = phantom.start(argv, gpu=request.gpu_name, count=request.gpus, context=True, stdout=out)
        else:
            process = subprocess.Popen(argv, stdout=out)
        with _passing_on(process):
            return _wait(process)


def _wait(process: subprocess.Popen[Any]) -> int:
    while True:
        # Ctrl-C reaches the program by itself: both are in the terminal's foreground.
        with suppress(KeyboardInterrupt):
            return process.wait()


@contextmanager
def _passing_on(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Within the block a SIGTERM goes to the program, which closes its file."""
    before = signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
