"""Builds small traces by hand for tests of what reads traces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace import Action, Events, Trace
from hotbed.trace.model import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB = 1 << 20
ALLOC, REQUEST, DONE = Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED
GROW, SHRINK, OOM = Action.SEGMENT_ALLOC, Action.SEGMENT_FREE, Action.OOM

Event = tuple[Action, int, int] | tuple[Action, int, int, int]


def trace_of(events: Sequence[Event], **changes: object) -> Trace:
    """A trace of (action, address, bytes[, stream]) events, one microsecond apart."""
    count = len(events)

    def column(values: list[int], kind: type) -> np.ndarray:
        return np.array(values, dtype=kind)

    none = [NONE] * count
    made = Events(
        action=column([int(event[0]) for event in events], np.uint8),
        address=column([event[1] for event in events], np.uint64),
        size=column([event[2] for event in events], np.int64),
        stream=column([event[3] if len(event) > 3 else 0 for event in events], np.uint64),
        pool=column(none, np.int32),
        time_us=column(list(range(1, count + 1)), np.int64),
        stack=column(none, np.int32),
        metadata=column(none, np.int32),
        step=column(none, np.int32),
        category=column(none, np.int32),
    )
    return replace(Trace(source="invented", device=0, events=made, segments=()), **changes)  # type: ignore[arg-type]


def freed(address: int, size: int) -> list[Event]:
    """The two events of a free that no side stream delays."""
    return [(REQUEST, address, size), (DONE, address, size)]


def training(sizes: Sequence[int], lasting: int = 4 * MIB) -> Trace:
    """Steps that each allocate two blocks of sizes[i] and free them, over one block that stays.

    The second block of a step outlives it: the next step frees it after its own first allocation, as a loop
    variable does.
    """
    events: list[Event] = [(ALLOC, 0x1000, lasting)]
    carried: tuple[int, int] | None = None
    for step, size in enumerate(sizes):
        first, second = 0x100000 * (2 * step + 1), 0x100000 * (2 * step + 2)
        events.append((ALLOC, first, size))
        if carried is not None:
            events += freed(*carried)
        events.append((ALLOC, second, size // 8 + 1))
        events += freed(first, size)
        carried = (second, size // 8 + 1)
    return trace_of(events)
