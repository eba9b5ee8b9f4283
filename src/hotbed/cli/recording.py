"""What `hotbed record` does once its options are read: the program's process, and its file when that is over."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import tempfile
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
    from hotbed.predicting.program import Program

_BOOT = Path(recording.__file__).parent / "boot.py"
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
_FROM_TERMINAL = 0x80
"""si_code of a signal that the kernel made. Source: SI_KERNEL, sigaction(2)"""
_LOOK_S = 0.2


def answer(request: Request) -> int:
    """Runs the program, rewrites its file compactly, says what is in it. Returns the exit status: 0, or 3 if it failed."""
    if request.gpu_name and not request.phantom:
        raise UsageError("--gpu is for --phantom: a real GPU is what it is")
    program = program_of(request)
    if not request.phantom:
        refuse_without_gpu("record", request.program)
    path = path_of(request)
    make_room(path)
    status = _run(request, program, path)
    traces = compacted(path)
    if request.as_json:
        print_json(to_json(path, status, traces))
    else:
        note(line(path, traces))
    return 3 if status else int(not traces)


def refuse_without_gpu(verb: str, program: str) -> None:
    """Raises PlatformError where no program can use a GPU."""
    try:
        found = bool(live_gpus())
    except PlatformError:
        found = _has_driver()
    if not found:
        raise PlatformError(
            "this machine has no NVIDIA GPU, or no driver for it",
            hint=f"hotbed {verb} --phantom --gpu h100-80 {program} runs it on a GPU that is not there",
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
        return wait(process)


def wait(process: subprocess.Popen[Any]) -> int:
    """Until the program ends. Signals go on to it, so that it closes its file.

    Ctrl-C reaches it by itself, since both are in the terminal's foreground; a SIGINT that a process sent here does not.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    try:
        while (status := process.poll()) is None:
            heard = signal.sigtimedwait(_HEARD, _LOOK_S)
            if heard is None or heard.si_signo == signal.SIGCHLD:
                continue
            if heard.si_signo == signal.SIGTERM or heard.si_code != _FROM_TERMINAL:
                process.send_signal(heard.si_signo)
        return status
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
