"""Cuts a run into set-up, training steps and evaluation, from the marks that the recorder left."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.trace.marking.counts import Counters
    from hotbed.trace.recorded import Phase


@dataclass(frozen=True)
class Moment:
    """A mark of the recorder (hotbed.recording.following.Mark) on one device.

    `in_gap`: it lies among events that were not recorded; `place` is then behind them.
    """

    kind: str
    place: int
    time_us: int
    ends_round: bool = False
    in_gap: bool = False
    counters: Counters | None = None


@dataclass(frozen=True)
class StepMark:
    """One stretch of the program on one device: set-up, an optimizer step, or forward passes without gradients.

    `first_event` and `end_event` are indices into the trace's events: [first, end).
    """

    phase: Phase
    first_event: int
    end_event: int
    seconds: float


@dataclass(frozen=True)
class Stretch:
    """A StepMark, with the moments that it lies between."""

    phase: Phase
    first: Moment
    end: Moment

    @property
    def first_event(self) -> int:
        """Index of its first event."""
        return self.first.place

    @property
    def end_event(self) -> int:
        """Index behind its last event."""
        return self.end.place

    def mark(self) -> StepMark:
        """It without the moments."""
        seconds = max(self.end.time_us - self.first.time_us, 0) / 1e6
        return StepMark(self.phase, self.first_event, self.end_event, seconds)


@dataclass(frozen=True)
class _Stretch:
    first: Moment
    end: Moment


def phases(
    moments: Sequence[Moment], learns: bool, training: Moment, end: Moment, begun: Moment
) -> tuple[Stretch, ...]:
    """Stretches in order, without overlap. `training`: where set-up is over and the first step or forward begins.

    A program that `learns` trains, even if it ended within its first forward.

    Work between steps belongs to the step before it, evaluation apart; so does all that follows the last step,
    unless it was the beginning of another one.
    """
    evaluations = _evaluations(moments, training, end)
    if not learns and not any(moment.kind in ("backward", "step") for moment in moments):
        return _without_training(evaluations or [_Stretch(training, end)], begun)
    marks: list[Stretch] = []
    first = begun
    phase: Phase = "setup"
    stretches = _training(moments, training, end)
    begins = [evaluation.first.place for evaluation in evaluations]
    for stretch in stretches:
        start = stretch.first
        within = evaluations[bisect_left(begins, start.place) : bisect_right(begins, stretch.end.place)]
        inside = [e for e in within if e.end.place <= stretch.end.place]
        if inside:
            marks.append(Stretch(phase, first, inside[0].first))
            marks.append(Stretch("eval", inside[0].first, inside[-1].end))
            start = inside[-1].end
        else:
            marks.append(Stretch(phase, first, start))
        first, phase = start, "train"
    last = stretches[-1].end
    after = [e for e in evaluations if e.first.place >= last.place]
    marks.append(Stretch(phase, first, after[0].first if after else last))
    if after:
        marks.append(Stretch("eval", after[0].first, after[-1].end))
    return tuple(mark for mark in marks if mark.phase == "train" or mark.end_event > mark.first_event)


def _training(moments: Sequence[Moment], training: Moment, end: Moment) -> list[_Stretch]:
    """Whole steps, and the one that was under way at the end."""
    stretches, first = [], training
    under_way = False
    for moment in moments:
        under_way = under_way or moment.kind in ("backward", "step")
        if moment.ends_round:
            stretches.append(_Stretch(first, moment))
            first, under_way = moment, False
    if under_way or not stretches:
        stretches.append(_Stretch(first, end))
    return stretches


def _evaluations(moments: Sequence[Moment], training: Moment, end: Moment) -> list[_Stretch]:
    """From eval() to train(), to the end, or to the last forward without gradients before training goes on."""
    found: list[_Stretch] = []
    first: Moment | None = None
    last: Moment | None = None
    for moment in [*moments, end]:
        if moment.kind == "eval" and first is None:
            first, last = max(moment, training, key=lambda m: m.place), None
        elif moment.kind == "forward end":
            last = moment
        elif first is not None and moment.kind in ("train", "backward", "step", "end"):
            over = last if moment.kind in ("backward", "step") else moment
            if over is not None and over.place > first.place:
                found.append(_Stretch(first, over))
            first = None
    return found


def _without_training(evaluations: list[_Stretch], begun: Moment) -> tuple[Stretch, ...]:
    first, last = evaluations[0].first, evaluations[-1].end
    marks = (Stretch("setup", begun, first), Stretch("eval", first, last))
    return tuple(mark for mark in marks if mark.end_event > mark.first_event)
