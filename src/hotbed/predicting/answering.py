"""From what a run on the phantom showed to the Prediction."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hotbed.gpu import catalogue
from hotbed.predicting.capacity import Capacity
from hotbed.predicting.cards import Judge, fit_by_peak, hardest
from hotbed.predicting.layouts import variants
from hotbed.predicting.margin import margin_bytes
from hotbed.predicting.overhead import overhead_of
from hotbed.predicting.peaks import Peaks
from hotbed.predicting.prediction import DevicePeaks, GpuFit, Overhead, Prediction, Range, SeedPeaks
from hotbed.predicting.recommending import Advice, compared, searched
from hotbed.predicting.remarks import undershooting, unknown_why, warnings_of
from hotbed.predicting.script_run import failed_by_itself
from hotbed.replaying import compile_trace
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hotbed.gpu import Gpu
    from hotbed.predicting.program import Program
    from hotbed.predicting.script_run import DeviceRun, ScriptRun
    from hotbed.replaying import Replayer
    from hotbed.trace import Trace


@dataclass(frozen=True)
class Question:
    """What to answer beyond the peaks. `cards`: also for each GPU of the catalogue; `goal`: search settings by it."""

    gpu: Gpu
    cards: bool = True
    goal: str | None = None
    python: str | None = None
    tell: Callable[[str], None] = lambda _: None
    """hears in words what is going on"""


def predict(
    program: Program,
    run: ScriptRun,
    question: Question,
    replayer: Callable[[], Replayer],
    failed: ScriptRun | None = None,
) -> Prediction:
    """The Prediction that `run` gives for `program`.

    `replayer`, called only where there is a trace, gives one on a roomy card (capacity.roomy) with the torch of the
    run. `failed` is a run on the asked GPU that ended out of memory, after which `run` was given enough.
    """
    return _Answer(program, run, question, replayer, failed).prediction()


class _Answer:
    """One run under evaluation; the heaviest device stands for the program."""

    def __init__(
        self,
        program: Program,
        run: ScriptRun,
        question: Question,
        replayer: Callable[[], Replayer],
        failed: ScriptRun | None,
    ) -> None:
        self.program, self.run, self.question, self.failed = program, run, question, failed
        self.cards = question.cards and not failed_by_itself(run.ending, run.script_exit_code)
        self.heaviest = _heaviest(run)
        self.seeds = _seeds(run)
        trace = self.heaviest.trace if self.heaviest else None
        self.trace = trace if trace is not None and len(trace.events) else None
        self.capacity = Capacity(replayer(), self.trace) if self.trace is not None else None

    def prediction(self) -> Prediction:
        run, heaviest = self.run, self.heaviest
        first = self.failed or run
        peaks = Peaks.of(self.trace) if self.trace is not None else None
        allocated = heaviest.peak_allocated_bytes if heaviest else 0
        reserved = heaviest.peak_reserved_bytes if heaviest else 0
        steps = peaks.steps(heaviest.steps) if peaks and heaviest else ()
        overhead = self._overhead(self.question.gpu)
        layouts, over_seeds = self._range(reserved), _apart(self.seeds)
        spread = Range(layouts.low - over_seeds, layouts.high + over_seeds)
        advice = self._advice()
        fits = self._fits(advice)
        unknown = unknown_why(first) if fits[0].fits else None
        undershoots = undershooting(run, heaviest)
        return Prediction(
            program=command_line(self.program),
            gpu=self.question.gpu.name,
            settings=run.settings,
            torch_version=run.torch_version,
            ending=first.ending,
            optimizer_steps=run.optimizer_steps,
            device=heaviest.device if heaviest else 0,
            peak_allocated_bytes=allocated,
            peak_reserved_bytes=reserved,
            peak_reserved_range_bytes=spread,
            device_used_bytes=reserved + overhead.bytes,
            overhead=overhead,
            by_category=peaks.whole(allocated) if peaks else (),
            steps=steps,
            fits=fits,
            fits_asked=fits[0].fits if unknown is None else None,
            margin_bytes=margin_bytes(reserved, layouts, over_seeds),
            recommended_settings=advice.settings if advice else None,
            guesses=tuple(read for read in run.reads if not read.known),
            reads=run.reads,
            not_modelled=run.not_modelled,
            warnings=(
                *((undershoots,) if undershoots else ()),
                *self._oom_words(),
                *_layout_words(fits[0], spread.high + overhead.bytes),
                *warnings_of(run, heaviest),
            ),
            error=first.error,
            script_exit_code=first.script_exit_code,
            trace=None,
            wall_seconds=run.wall_seconds + (self.failed.wall_seconds if self.failed else 0.0),
            host_peak_bytes=max(run.host_peak_bytes, self.failed.host_peak_bytes if self.failed else 0),
            passes=run.passes,
            seeds=self.seeds,
            other_devices=self._others(),
            recommended_how=advice.how if advice else None,
            unknown=unknown,
            undershoots=undershoots,
            uses_gpu=run.used_gpu,
        )

    def _others(self) -> tuple[DevicePeaks, ...]:
        return tuple(_peaks_of(one) for one in self.run.devices if one is not self.heaviest)

    def _overhead(self, gpu: Gpu) -> Overhead:
        """What no allocator sees on `gpu`, memory included that the program took from the driver by itself."""
        found = overhead_of(gpu, self.run)
        if self.heaviest is None:
            return found
        context = self.run.gpu.context_bytes or 0
        outside = self.heaviest.peak_driver_bytes - self.heaviest.peak_reserved_bytes - context
        if outside <= 0:
            return found
        return replace(
            found,
            bytes=found.bytes + outside,
            parts=(*found.parts, ("taken from the driver past torch", outside)),
        )

    def _oom_words(self) -> tuple[str, ...]:
        if self.failed is None:
            return ()
        gpu = self.question.gpu
        after = f"after {self.failed.optimizer_steps} optimizer steps"
        more = "" if self.run.ending != "out_of_memory" else ", and runs out of that as well"
        return (
            f"runs out of memory on {gpu.name} ({format_size(gpu.total_bytes)}) {after}; the figures are those of the "
            f"same GPU with {format_size(self.run.gpu.total_bytes)}{more}",
        )

    def _range(self, reserved: int) -> Range:
        """Replays the trace as other GPC layouts would have made it: the direct figure moves by what a replay moves."""
        if self.capacity is None or self.heaviest is None:
            return Range(reserved, reserved)
        trace, replayer = self.capacity.trace, self.capacity.replayer
        pending = [
            replayer.submit(other, compile_trace(other), self.run.settings)
            for other in variants(trace, self.heaviest.workspaces)
        ]
        primary = self.capacity.outcomes(self.run.settings, [None])[0].peak_reserved_bytes if pending else 0
        moved = [result().peak_reserved_bytes for result in pending]
        figures = [reserved, *(reserved + peak - primary for peak in moved)]
        return Range(min(figures), max(figures))

    def _advice(self) -> Advice | None:
        if self.capacity is None or not self.cards:
            return None
        if self.question.goal is None:
            return compared(self.capacity, self.run.settings)
        return searched(
            self.capacity, self.question.gpu, self.question.goal, self.question.python, self.question.tell
        )

    def _fits(self, advice: Advice | None) -> tuple[GpuFit, ...]:
        """The asked GPU first, then the catalogue by memory."""
        asked = self.question.gpu
        others = sorted(catalogue(), key=lambda gpu: gpu.total_bytes) if self.cards else []
        gpus = [asked, *(gpu for gpu in others if gpu.slug != asked.slug)]
        cards = [(gpu, self._overhead(gpu)) for gpu in gpus]
        if self.capacity is None:
            peak = self.heaviest.peak_reserved_bytes if self.heaviest else 0
            found = [fit_by_peak(gpu, overhead, peak) for gpu, overhead in cards]
        else:
            settings = advice.settings if advice else None
            judges = self._judges(self.capacity, settings)
            found = [hardest([judge.fit(gpu, overhead) for judge in judges]) for gpu, overhead in cards]
        if self.failed is not None:
            found[0] = replace(found[0], fits=False)
        return tuple(found)

    def _fuller(self) -> list[Trace]:
        """The trace of the seed that holds most at once, if that is not the run's own: less memory never does for it."""
        found = [device for device in map(_heaviest, self.run.further) if device is not None and device.trace]
        most = max(found, key=lambda one: one.peak_allocated_bytes, default=None)
        if most is None or self.heaviest is None or most.trace is None:
            return []
        return [most.trace] if most.peak_allocated_bytes > self.heaviest.peak_allocated_bytes else []

    def _judges(self, capacity: Capacity, recommended: str | None) -> list[Judge]:
        """The heaviest device's, and those of devices and seeds that might need more than it where memory is short."""
        first = Judge(capacity, self.run, recommended)
        least = first.need.smallest_bytes
        others = [
            one.trace
            for one in self.run.devices
            if one is not self.heaviest
            and one.trace is not None
            and (least is None or one.peak_reserved_bytes > least)
        ]
        others += self._fuller()
        return [
            first,
            *(Judge(Capacity(capacity.replayer, trace), self.run, recommended) for trace in others),
        ]


def _heaviest(run: ScriptRun) -> DeviceRun | None:
    return max(run.devices, key=lambda one: (one.peak_reserved_bytes, one.peak_allocated_bytes), default=None)


def _seeds(run: ScriptRun) -> tuple[SeedPeaks, ...]:
    """The peaks of each seed; empty where there was one."""
    if not run.further:
        return ()
    found = [(one.seed, _heaviest(one)) for one in sorted((run, *run.further), key=lambda one: one.seed)]
    return tuple(
        SeedPeaks(seed, device.peak_allocated_bytes, device.peak_reserved_bytes)
        for seed, device in found
        if device
    )


def _apart(seeds: Sequence[SeedPeaks]) -> int:
    """Reserved bytes between the seed that needs least and the one that needs most."""
    peaks = [one.peak_reserved_bytes for one in seeds]
    return max(peaks, default=0) - min(peaks, default=0)


def _peaks_of(one: DeviceRun) -> DevicePeaks:
    peaks = Peaks.of(one.trace) if one.trace is not None else None
    return DevicePeaks(
        device=one.device,
        peak_allocated_bytes=one.peak_allocated_bytes,
        peak_reserved_bytes=one.peak_reserved_bytes,
        by_category=peaks.whole(one.peak_allocated_bytes) if peaks else (),
    )


def _layout_words(asked: GpuFit, most_bytes: int) -> tuple[str, ...]:
    if not asked.fits or most_bytes <= asked.total_bytes:
        return ()
    return (
        f"it fits as predicted; with what is not known of the card and of guessed sizes, up to {format_size(most_bytes)} "
        "would be used",
    )


def command_line(program: Program) -> str:
    """`program` as one would type it after the interpreter's name."""
    start = {"script": [program.target], "module": ["-m", program.target], "stdin": ["-"]}
    return shlex.join([*start.get(program.kind, [program.target]), *program.arguments])
