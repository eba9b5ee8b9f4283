"""leak/reference-cycle: memory that only the garbage collector gives back, as far as its collections and samples show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings.finding import Finding
from hotbed.findings.leak_text import FIXES
from hotbed.findings.wording import counted, line_words
from hotbed.trace.model import Action
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.trace import Frame
    from hotbed.trace.recorded import CacheCall, Holding

_NOTABLE: Final = 0.02
"""share of the peak that a collection must free, or a dead cycle hold"""
_LEAST: Final = 16 * MIB
HEAVY: Final = 0.1
"""share from which on it is a problem"""
_FEWEST: Final = 2
"""collections that free much; one alone may be a model that was dropped"""
_FEWEST_STEPS: Final = 3
"""in which what they free was allocated"""


def find(case: Case) -> Iterator[Finding]:
    """At most one finding."""
    notable = max(_LEAST, _NOTABLE * case.allocated_at(case.peak))
    runs = [call for call in case.recorded.calls if call.kind in ("gc", "gc.collect")]
    runs = [call for call in runs if call.allocated_before - call.allocated_after >= notable]
    dead = _dead(case, notable)
    freed = np.concatenate([_freed_by(case, call) for call in runs]) if runs else np.empty(0, np.int64)
    lines = _lines(case, freed)
    births = case.allocations.made[freed]
    repeated = len(runs) >= _FEWEST and _steps_of(case, births) >= _FEWEST_STEPS
    if not repeated and (dead is None or dead.tensors < _FEWEST):
        return
    most = max([call.allocated_before - call.allocated_after for call in runs] + [dead.bytes if dead else 0])
    where = dead.where if dead is not None else None
    frames = [frame for frame, _ in lines.most_common()]
    yield Finding(
        code="leak/reference-cycle",
        severity="problem" if most >= HEAVY * case.allocated_at(case.peak) else "notice",
        title=f"reference cycles keep up to {format_size(most)} until the garbage collector runs",
        evidence=tuple(_evidence(runs, dead, lines)),
        fix=FIXES["leak/reference-cycle"],
        bytes=most,
        where=where or (frames[0] if frames else None),
        others=tuple(frame for frame in frames if frame != where)[:5],
    )


def _dead(case: Case, notable: float) -> Holding | None:
    """The largest dead cycle that a sample shows."""
    rows = [row for sample in case.recorded.samples for row in sample.holdings if row.kind == "cycle"]
    return max((row for row in rows if row.bytes >= notable), key=lambda row: row.bytes, default=None)


def _freed_by(case: Case, call: CacheCall) -> npt.NDArray[np.int64]:
    """Allocations that were freed by a collection: the frees that follow its beginning, as many bytes as it freed."""
    if call.event is None:
        return np.empty(0, np.int64)
    made = case.allocations
    events = case.trace.events
    end, left = call.event, call.allocated_before - call.allocated_after
    while (
        end < len(events)
        and left > 0
        and events.action[end] in (Action.FREE_REQUESTED, Action.FREE_COMPLETED)
    ):
        left -= int(events.size[end]) if events.action[end] == Action.FREE_REQUESTED else 0
        end += 1
    return np.flatnonzero((made.freed >= call.event) & (made.freed < end))


def _steps_of(case: Case, events: npt.NDArray[np.int64]) -> int:
    """In how many steps `events` lie; where there are no steps, how many they are."""
    ends = [step.end_event for step in case.steps if step.end_event is not None]
    return len(np.unique(np.searchsorted(ends, events, "right") if ends else events))


def _lines(case: Case, freed: npt.NDArray[np.int64]) -> Counter[Frame]:
    held: Counter[Frame] = Counter()
    for index in freed.tolist():
        frame = case.line_of(int(case.allocations.stack[index]))
        if frame is not None:
            held[frame] += int(case.allocations.size[index])
    return held


def _evidence(runs: list[CacheCall], dead: Holding | None, lines: Counter[Frame]) -> Iterator[str]:
    if dead is not None:
        yield f"{dead.owner}: {counted(dead.tensors, 'tensor')}, {format_size(dead.bytes)}, that nothing in use refers to"
    if runs:
        freed = [call.allocated_before - call.allocated_after for call in runs]
        yield (
            f"{counted(len(runs), 'collection')} gave {format_size(sum(freed))} back, {format_size(max(freed))} at most at once; "
            "tensors without cycles are freed when their last reference goes"
        )
    if lines:
        named = ", ".join(
            f"{line_words(f.filename, f.line)} {format_size(size)}" for f, size in lines.most_common(3)
        )
        yield f"what they freed was allocated by {named}"
