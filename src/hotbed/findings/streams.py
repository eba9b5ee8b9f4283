"""leak/pending-stream and leak/side-stream-cache: memory that waits for another stream, or lies in one that is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings.finding import Finding
from hotbed.findings.leak_text import FIXES
from hotbed.findings.wording import counted
from hotbed.trace.model import Action
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.findings.case import Case

_LEAST: Final = 128 * MIB
_FEWEST_STEPS: Final = 3
_NOTABLE: Final = 0.1
"""share of the reserved peak"""
_HEAVY: Final = 0.25
"""share from which on it is a problem"""
_IDLE: Final = 0.5
"""share of the trace, at its end, without an allocation on the stream"""


def find(case: Case) -> Iterator[Finding]:
    """At most one finding of each kind."""
    yield from _pending(case)
    yield from _stranded(case)


def _pending(case: Case) -> Iterator[Finding]:
    """Blocks that the program has freed while another stream still used them."""
    made = case.allocations
    waiting = np.flatnonzero(made.completed > made.freed + 1)
    if not len(waiting):
        return
    count = len(case.trace.events)
    change = np.zeros(count + 2, np.int64)
    np.add.at(change, np.maximum(made.freed[waiting], 0), made.size[waiting])
    np.subtract.at(change, np.minimum(made.completed[waiting], count + 1), made.size[waiting])
    level = change.cumsum()
    place = int(level.argmax())
    most, reserved = int(level[place]), case.reserved_at(case.reserved_peak)
    if most < max(_LEAST, _NOTABLE * reserved):
        return
    there = waiting[(made.freed[waiting] <= place) & (made.completed[waiting] > place)]
    chosen = np.zeros(len(made), bool)
    chosen[there] = True
    lines = [share.of for share in case.by_line(chosen) if share.of is not None]
    ends = [step.end_event for step in case.train_steps if step.end_event is not None]
    steps = len(np.unique(np.searchsorted(ends, made.freed[there], "right"))) if ends else 0
    yield Finding(
        code="leak/pending-stream",
        severity="problem" if most >= _HEAVY * reserved else "notice",
        title=f"up to {format_size(most)} is freed but waits for another stream",
        evidence=(
            f"{counted(len(there), 'block')} at event {place}: free_requested without free_completed, since record_stream() made "
            "each wait until the other stream has passed",
            f"reserved at its peak {format_size(reserved)}: what waits cannot be used again, so more is taken from the driver",
        ),
        fix=FIXES["leak/pending-stream"],
        bytes=most,
        per_step_bytes=most // steps if steps >= _FEWEST_STEPS else None,
        where=lines[0] if lines else None,  # type: ignore[arg-type]
        others=tuple(lines[1:5]),  # type: ignore[arg-type]
        events=(int(made.freed[there].min()), min(place + 1, count)),
    )


def _stranded(case: Case) -> Iterator[Finding]:
    """Memory that is cached for a stream on which nothing was allocated for long."""
    events = case.trace.events
    count = len(events)
    is_alloc = events.action == Action.ALLOC
    free: dict[int, int] = {}
    for segment in case.map_at(count) if len(np.unique(events.stream[is_alloc])) > 1 else ():
        idle = sum(block.size_bytes for block in segment.blocks if block.state == "inactive")
        free[segment.stream] = free.get(segment.stream, 0) + idle
    reserved = case.reserved_at(count)
    for stream, idle in sorted(free.items(), key=lambda item: -item[1]):
        on_it = np.flatnonzero(is_alloc & (events.stream == stream))
        last = int(on_it[-1]) if len(on_it) else 0
        others = int((is_alloc[last:] & (events.stream[last:] != stream)).sum())
        if idle < max(_LEAST, _NOTABLE * reserved) or last > (1 - _IDLE) * count or not others:
            continue
        chosen = case.allocations.stream == np.uint64(stream)
        lines = [share.of for share in case.by_line(chosen) if share.of is not None]
        yield Finding(
            code="leak/side-stream-cache",
            severity="problem" if idle >= _HEAVY * reserved else "notice",
            title=f"{format_size(idle)} is cached for a stream that is no longer used",
            evidence=(
                f"stream {stream:#x}: {counted(len(on_it), 'allocation')}, the last at event {last} of {count}; "
                f"{format_size(idle)} of its memory is free at the end",
                f"a stream's cache serves that stream alone; {counted(others, 'allocation')} on other streams could not use it",
            ),
            fix=FIXES["leak/side-stream-cache"],
            bytes=idle,
            where=lines[0] if lines else None,  # type: ignore[arg-type]
            others=tuple(lines[1:5]),  # type: ignore[arg-type]
            events=(last, count),
        )
        return
