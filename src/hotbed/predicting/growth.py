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

    from hotbed.predicting.script_run import StepMark
    from hotbed.trace import Trace

_FEWEST = 2
"""steps that must have left something: a single one may have made what stays, and is made once"""
_MADE_ONCE = ("parameters", "gradients", "optimizer state", "buffers", "library workspaces")


def growth_per_step_bytes(trace: Trace, marks: Sequence[StepMark]) -> int:
    """Least number of bytes that a training step made and that are still held when the last one ends.

    The last step itself does not count, and neither does what a program has one set of: parameters, gradients and the
    like. 0 where fewer than three steps were seen.
    """
    steps = [mark for mark in marks if mark.phase == "train"]
    if len(steps) <= _FEWEST:
        return 0
    kept = _held_at(trace, steps[-1].end_event)
    return min(int(kept[step.first_event : step.end_event].sum()) for step in steps[:-1])


def _held_at(trace: Trace, end: int) -> npt.NDArray[np.int64]:
    """[end] bytes of each allocation that is alive before event `end`, and is not made once; 0 for other events."""
    events, owner = trace.events, allocations_of(trace)[:end]
    action = events.action[:end]
    alive = action == Action.ALLOC
    alive[owner[(action == Action.FREE_REQUESTED) & (owner != NONE)]] = False
    once = [number for number, name in enumerate(trace.strings) if name in _MADE_ONCE]
    return np.where(alive & ~np.isin(events.category[:end], once), events.size[:end], 0)
