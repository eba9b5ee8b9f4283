"""What `hotbed record` does once its options are read: the program's process, and its file when that is over."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed import phantom, recording
from hotbed.cli.printer import note, print_json
from hotbed.errors import PlatformError, TraceError, UsageError
from hotbed.gpu.live import live_gpus
from hotbed.predicting.program import Program
from hotbed.predicting.targets import script
from hotbed.recording.files import make_room, path_of_rank, rank
from hotbed.recording.schedule import Plan
from hotbed.trace import load_devices
from hotbed.trace.compaction import write_compact
from hotbed.trace.overview import overview
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.trace import Trace

_BOOT = Path(recording.__file__).parent / "boot.py"
_SCHEMA = 1


@dataclass(frozen=True)
class Request:
    """The options of `hotbed record` as typed; see hotbed.cli.record."""

    program: str
    arguments: tuple[str, ...]
    out: Path | None
    module: bool
    phantom: bool
    gpu_name: str | None
    gpus: int
    budget: float
    whole: bool
    every: int | None
    steps: int | None
    python: str | None
    as_json: bool


def answer(request: Request) -> int:
    """Runs the program, rewrites its file compactly, says what is in it. Returns the exit status: 0, or 3 if it failed."""
    if request.gpu_name and not request.phantom:
        raise UsageError("--gpu is for --phantom: a real GPU is what it is")
    program = _program(request)
    if not request.phantom:
        _refuse_without_gpu(request)
    path = path_of_rank(request.out or _default(request), rank())
    make_room(path)
    status = _run(request, program, path)
    traces = _compacted(path)
    if request.as_json:
        print_json(_json(path, status, traces))
    else:
        note(_line(path, traces))
    return 3 if status else int(not traces)


def _program(request: Request) -> Program:
    if request.module:
        return Program("module", request.program, request.arguments, request.python)
    if request.program == "-":
        return Program("stdin", sys.stdin.read(), request.arguments, request.python)
    return script(request.program, request.arguments, request.python)


def _default(request: Request) -> Path:
    name = request.program.rpartition(".")[2] if request.module else Path(request.program).stem
    return Path(f"{'stdin' if request.program == '-' else name}.record.hbt")


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
        (Path(folder) / "job.json").write_text(json.dumps(_job(request, program, path)))
        argv = [program.python or sys.executable, str(_BOOT), folder]
        sys.stdout.flush()
        out = 2 if request.as_json else None
        if request.phantom:
            process = phantom.start(argv, gpu=request.gpu_name, count=request.gpus, context=True, stdout=out)
        else:
            process = subprocess.Popen(argv, stdout=out)
        with _passing_on(process):
            return _wait(process)


def _job(request: Request, program: Program, path: Path) -> dict[str, Any]:
    plan = Plan(budget=request.budget / 100, whole=request.whole, every=request.every)
    return {
        "task": "recorded_program",
        "kind": program.kind,
        "target": program.target,
        "arguments": program.arguments,
        "source": program.source,
        "path": str(path.absolute()),
        "plan": asdict(plan),
        "steps": request.steps,
        "rank": rank(),
    }


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


def _compacted(path: Path) -> list[Trace]:
    """What was recorded, with the file rewritten; nothing where the program used no GPU."""
    try:
        traces = load_devices(path)
    except TraceError:
        return []
    write_compact(path, traces)
    return traces


def _line(path: Path, traces: list[Trace]) -> str:
    if not traces:
        return f"{path}: nothing was recorded, since the program did not use the GPU or ended too early"
    found = overview(traces[0])
    steps = sum(step.phase == "train" for step in traces[0].recorded.steps) if traces[0].recorded else 0
    peak = found.peak_reserved.size_bytes if found.peak_reserved else found.final_reserved_bytes
    return (
        f"{path}: {found.events} events, {steps} training steps, peak {format_size(peak)} reserved; "
        f"next: hotbed report {path}"
    )


def _json(path: Path, status: int, traces: list[Trace]) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "file": str(path) if traces else None,
        "script_exit_code": status,
        "devices": [
            {
                **overview(trace).to_json(),
                "overhead_seconds": trace.recorded.overhead_seconds if trace.recorded else None,
                "complete": trace.recorded.complete if trace.recorded else None,
            }
            for trace in traces
        ],
    }
