"""hotbed.replay: one trace under one configuration, from start of a worker to the Outcome."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import SettingsError, UsageError
from hotbed.gpu import DEFAULT_GPU, Gpu, costs_for, find_gpu
from hotbed.replaying.cost import cost_of
from hotbed.replaying.detail import fragmentation, peak_request, timeline
from hotbed.replaying.engine import Engine, Job, RawResult, raw_result
from hotbed.replaying.outcome import ASYNC_ERROR, OomPoint, Outcome
from hotbed.replaying.program import Program, compile_trace
from hotbed.settings import AllocatorSettings, TorchVersion, validate
from hotbed.trace import Trace, load_trace
from hotbed.units import format_mib

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

_NEARLY_FULL = 0.9


def replay(
    trace: Trace | str | PathLike[str],
    settings: str = "",
    cap_bytes: int | None = None,
    gpu: str | Gpu | None = None,
    *,
    python: str | None = None,
    detail: bool = True,
) -> Outcome:
    """What the allocator of the installed torch does with `trace` under `settings` on `gpu`.

    `settings` is an env string as in PYTORCH_CUDA_ALLOC_CONF; `cap_bytes` a limit like
    set_per_process_memory_fraction; `gpu` a catalogue name (default: an H200, enlarged if the recording held
    more). `python` is an interpreter with another torch. `detail` adds timeline and fragmentation (two more
    replays). Running out of memory is a result, not an error. Raises TraceError, SettingsError, TorchError.
    """
    loaded = trace if isinstance(trace, Trace) else load_trace(trace)
    program = compile_trace(loaded)
    with Replayer(gpu_for(gpu, program), python=python, backend=backend_of(settings)) as replayer:
        return replayer.replay(loaded, program, settings, cap_bytes, detail=detail)


def backend_of(settings: str) -> str:
    """The allocator backend that `settings` asks for."""
    return AllocatorSettings.parse(settings).backend


def gpu_for(name: str | Gpu | None, program: Program) -> Gpu:
    """The GPU called `name`; without a name an H200 whose memory never limits what the recording held."""
    if isinstance(name, Gpu):
        return name
    if name is not None:
        return find_gpu(name)
    default = find_gpu(DEFAULT_GPU)
    needed = 2 * sum(size for _, size in program.segments)
    return default if needed <= default.total_bytes else replace(default, total_bytes=needed)


def _with_context(gpu: Gpu) -> Gpu:
    """`gpu` with a context size: where nobody measured one, that of an H200 stands in."""
    if gpu.context_bytes is not None:
        return gpu
    return replace(gpu, context_bytes=find_gpu(DEFAULT_GPU).context_bytes)


class Replayer:
    """Replays traces on one GPU with one torch, turning raw counts into Outcomes. A context manager."""

    def __init__(
        self, gpu: Gpu, *, python: str | None = None, backend: str = "native", parallel: int | None = None
    ) -> None:
        self.gpu = _with_context(gpu)
        self.context_is_known = gpu.context_bytes is not None
        self.backend = backend
        self.engine = Engine(self.gpu, python=python, backend=backend, parallel=parallel)
        self.costs = costs_for(gpu)

    def __enter__(self) -> Replayer:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def replay(
        self,
        trace: Trace,
        program: Program,
        settings: str = "",
        cap_bytes: int | None = None,
        *,
        detail: bool = True,
        addresses: str = "recorded",
    ) -> Outcome:
        """One Outcome; `program` is compile_trace(trace), passed in so that it is compiled once."""
        outcome = self.submit(trace, program, settings, cap_bytes, addresses)()
        if not detail or self.backend != "native":
            return outcome
        return self._detailed(outcome, program, Job(settings, cap_bytes, addresses))

    def submit(
        self,
        trace: Trace,
        program: Program,
        settings: str = "",
        cap_bytes: int | None = None,
        addresses: str = "recorded",
    ) -> Callable[[], Outcome]:
        """Starts a replay without detail; the function returned waits for its Outcome."""
        if backend_of(settings) != self.backend:
            raise UsageError(f"this worker runs the {self.backend} backend, not the one of {settings!r}")
        if cap_bytes is not None and cap_bytes > self.gpu.total_bytes:
            raise UsageError(
                f"a cap of {cap_bytes} bytes exceeds the {self.gpu.name}'s {self.gpu.total_bytes}",
                hint="choose a smaller --cap or a larger --gpu",
            )
        self._refuse_invalid(settings)
        # The backend was chosen when the worker started; torch refuses to hear of it again.
        job = Job(settings if self.backend == "native" else "", cap_bytes, addresses)
        pending = self.engine.submit(program, job)
        return lambda: replace(
            self._outcome(trace, program, job, raw_result(pending.result(), job)), settings=settings
        )

    def _refuse_invalid(self, settings: str) -> None:
        """Says in our words, and before a process is forked, what this torch would refuse."""
        version = TorchVersion.parse(self.engine.torch_version)
        for finding in validate(AllocatorSettings.parse(settings), version):
            if finding.severity == "error":
                words = f"torch {version.release} refuses {settings!r}: {finding.message}"
                raise SettingsError(words, hint=finding.hint)

    def _outcome(self, trace: Trace, program: Program, job: Job, raw: RawResult) -> Outcome:
        stats = raw.stats
        done = len(program) if raw.failed_op is None else raw.failed_op
        return Outcome(
            source=trace.source,
            settings=job.settings,
            cap_bytes=job.cap_bytes,
            gpu=self.gpu.name,
            total_bytes=raw.total_bytes,
            context_bytes=self.gpu.context_bytes or 0,
            torch_version=self.engine.torch_version,
            out_of_memory=raw.failed_op is not None,
            oom=None if raw.failed_op is None else _oom_point(trace, program, raw.failed_op, stats),
            peak_reserved_bytes=stats["reserved_bytes.all.peak"],
            peak_allocated_bytes=stats["allocated_bytes.all.peak"],
            peak_active_bytes=stats["active_bytes.all.peak"],
            peak_requested_bytes=stats["requested_bytes.all.peak"],
            peak_segments=stats["segment.all.peak"],
            device_mallocs=stats["num_device_alloc"],
            device_frees=stats["num_device_free"],
            alloc_retries=stats["num_alloc_retries"],
            ooms=stats["num_ooms"],
            stream_syncs=stats["num_sync_all_streams"],
            operations=done,
            seconds=raw.seconds,
            cost=cost_of(raw.counters, raw.marks, program.steps, self.costs),
            estimate=None if self.backend == "native" else ASYNC_ERROR,
            notes=(*program.notes, *self._card_notes(raw, job)),
        )

    def _card_notes(self, raw: RawResult, job: Job) -> tuple[str, ...]:
        """What to know where the card itself, not a cap, was the limit or nearly so."""
        context = self.gpu.context_bytes or 0
        full = raw.stats["reserved_bytes.all.peak"] + context > _NEARLY_FULL * raw.total_bytes
        if job.cap_bytes is not None or not (full or raw.failed_op is not None):
            return ()
        source = (
            "measured" if self.context_is_known else f"not known for a {self.gpu.name}, so that of an H200"
        )
        return (
            f"the CUDA context takes {format_mib(context)} of the card ({source}); libraries load 90 to 350 MiB more "
            "(on an H200), which a replay does not count",
        )

    def _detailed(self, outcome: Outcome, program: Program, job: Job) -> Outcome:
        """Two more replays: one with torch's history for the curve, one up to the peak for the memory map."""
        with tempfile.TemporaryDirectory(prefix="hotbed-") as folder:
            path = Path(folder) / "history.pickle"
            raw = self.engine.run(program, replace(job, history=True, snapshot_path=str(path)))
            history = load_trace(path)
            outcome = replace(outcome, timeline=timeline(program, history, raw))
            request = peak_request(program, history, raw)
            if request is None:
                return outcome
            path = Path(folder) / "peak.pickle"
            self.engine.run(program, replace(job, stop_op=request.op, snapshot_path=str(path)))
            segments = load_trace(path).segments
            return replace(outcome, fragmentation=fragmentation(program, request, segments))


def _oom_point(trace: Trace, program: Program, op: int, stats: dict[str, int]) -> OomPoint:
    allocated, reserved = stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]
    reached = sum(start <= op for start in program.steps.starts)
    return OomPoint(
        event=program.event[op] if program.event[op] >= 0 else None,
        events=len(trace.events),
        step=reached - 1 if reached else None,
        requested_bytes=program.size[op],
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        free_reserved_bytes=reserved - allocated,
    )
