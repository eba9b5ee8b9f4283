"""Puts steps and categories into a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.marking.categories import CATEGORIES
from hotbed.trace.marking.steps import steps_of
from hotbed.trace.model import NONE
from hotbed.trace.numbering import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.marking.blocks import Blocks
    from hotbed.trace.marking.phases import Stretch
    from hotbed.trace.model import Trace
    from hotbed.trace.recorded import Recorded


def marked(
    trace: Trace,
    blocks: Blocks,
    stretches: Sequence[Stretch],
    category: npt.NDArray[np.int8],
    recorded: Recorded,
) -> Trace:
    """`trace` with its columns step and category filled, and `recorded` with the steps added.

    `category` has an index into CATEGORIES for each of blocks.allocs.
    """
    strings = np.full(len(trace.events), NONE, np.int32)
    strings[blocks.allocs] = category + len(trace.strings)
    steps = steps_of(trace, stretches, [gap.event for gap in recorded.gaps])
    return canonical(
        replace(
            trace,
            events=replace(trace.events, step=_step_column(len(trace.events), stretches), category=strings),
            strings=(*trace.strings, *CATEGORIES),
            recorded=replace(recorded, steps=steps),
        )
    )


def _step_column(events: int, stretches: Sequence[Stretch]) -> npt.NDArray[np.int32]:
    """Number of the training step of each event; NONE in set-up and evaluation."""
    column = np.full(events, NONE, np.int32)
    training = [stretch for stretch in stretches if stretch.phase == "train"]
    for number, stretch in enumerate(training):
        column[stretch.first_event : stretch.end_event] = number
    return column
