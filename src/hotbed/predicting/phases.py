"""Cuts a run into set-up, training steps and evaluation, from the marks that the recorder left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.predicting.script_run import StepMark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.predicting.script_run import Phase


@dataclass(frozen=True)
class Moment:
    """A mark of the recorder (hotbed.recording.following.Mark) on one device."""

    kind: str
    place: int
    time_us: int
    ends_round: bool = False


@dataclass(frozen=True)
class _Stretch:
    first: Moment
    end: Moment


def phases(
    moments: Sequence[Moment], learns: bool, training: Moment, end: Moment, begun: Moment
) -> tuple[StepMark, ...]:
    """Stretches in order, without overlap. `training`: where set-up is over and the first step or forward begins.

    A program that `learns` trains, even if it ended within its first forward.

    Work between steps belongs to the step before it, evaluation apart; so does all that follows the last step,
    unless it was the beginning of another one.
    """
    evaluations = _evaluations(moments, training, end)
    if not learns and not any(moment.kind in ("backward", "step") for moment in moments):
        return _without_training(evaluations or [_Stretch(training, end)], begun)
    marks: list[StepMark] = []
    first, phase = begun, "setup"
    stretches = _training(moments, training, end)
    for stretch in stretches:
        start = stretch.first
        inside = [e for e in evaluations if start.place <= e.first.place and e.end.place <= stretch.end.place]
        if inside:
            marks.append(_mark(phase, first, inside[0].first))
            marks.append(_mark("eval", inside[0].first, inside[-1].end))
            start = inside[-1].end
        else:
            marks.append(_mark(phase, first, start))
        first, phase = start, "train"
    last = stretches[-1].end
    after = [e for e in evaluations if e.first.place >= last.place]
    marks.append(_mark(phase, first, after[0].first if after else last))
    if after:
        marks.append(_mark("eval", after[0].first, after[-1].end))
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


def _without_training(evaluations: list[_Stretch], begun: Moment) -> tuple[StepMark, ...]:
    first, last = evaluations[0].first, evaluations[-1].end
    marks = (_mark("setup", begun, first), _mark("eval", first, last))
    return tuple(mark for mark in marks if mark.end_event > mark.first_event)


def _mark(phase: str, first: Moment, end: Moment) -> StepMark:
    named: Phase = "setup" if phase == "setup" else "train" if phase == "train" else "eval"
    return StepMark(named, first.place, end.place, max(end.time_us - first.time_us, 0) / 1e6)
