"""Finds memory that each training step leaves behind; what one step's end holds more than another's is no growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotbed.predicting.lifetimes import allocations_of
from hotbed.trace import Action
from hotbed.trace.model import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace import Trace
    from hotbed.trace.marking.phases import StepMark

_MADE_ONCE = ("parameters", "gradients", "optimizer state", "buffers", "library workspaces")


def growth_per_step_bytes(trace: Trace, marks: Sequence[StepMark]) -> int:
    """Bytes that each step after the first made at the same places of the program, and that the last one still holds.

    What is made once does not count, at whatever step that was, and neither does what the next step frees. 0 where
    fewer than three steps were seen.
    """
    later = [mark for mark in marks if mark.phase == "train"][1:]
    if len(later) < 2:
        return 0
    kept = _held_at(trace, later[-1].end_event)
    places = trace.events.stack - NONE
    by_place = [
        np.bincount(places[first:end], kept[first:end], minlength=len(trace.stacks) - NONE)
        for first, end in ((step.first_event, step.end_event) for step in later)
    ]
    return int(np.minimum.reduce(by_place).sum())


def _held_at(trace: Trace, end: int) -> npt.NDArray[np.int64]:
    """[end] bytes of each allocation that is alive before event `end`, and is not made once; 0 for other events."""
    events, owner = trace.events, allocations_of(trace)[:end]
    action = events.action[:end]
    alive = action == Action.ALLOC
    alive[owner[(action == Action.FREE_REQUESTED) & (owner != NONE)]] = False
    once = [number for number, name in enumerate(trace.strings) if name in _MADE_ONCE]
    return np.where(alive & ~np.isin(events.category[:end], once), events.size[:end], 0)
