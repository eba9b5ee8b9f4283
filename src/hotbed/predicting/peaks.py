"""Peaks by step and by category, read off a recorded trace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hotbed.predicting.lifetimes import allocations_of
from hotbed.predicting.prediction import CategoryBytes, StepPeak
from hotbed.trace import Action
from hotbed.trace.marking.categories import CATEGORIES
from hotbed.trace.model import NONE
from hotbed.trace.overview import curves

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace import Trace
    from hotbed.trace.marking.phases import StepMark

    Bytes = npt.NDArray[np.int64]

ROUNDING = "block rounding"
"""bytes of blocks beyond the request rounded to 512: the allocator leaves up to 1 MiB of a large block unsplit"""
_MIN_BLOCK = 512


@dataclass(frozen=True)
class Peaks:
    """Curves of one trace: bytes behind each event, allocated, reserved and by category; [n] each.

    Allocated counts each request rounded to 512 bytes, so it may be below torch's figure by ROUNDING.
    """

    allocated: Bytes
    reserved: Bytes
    by_category: dict[str, Bytes]

    @classmethod
    def of(cls, trace: Trace) -> Peaks:
        """The curves of `trace`. An allocation without a category counts as "other"."""
        found = curves(trace)
        events = trace.events
        owner = allocations_of(trace)
        rounded = np.maximum(_MIN_BLOCK, -(-events.size // _MIN_BLOCK) * _MIN_BLOCK)
        sign = (events.action == Action.ALLOC).astype(np.int64) - (events.action == Action.FREE_REQUESTED)
        change = np.where(owner == NONE, 0, sign * rounded)
        category = events.category[owner]
        names = dict(enumerate(trace.strings))
        by_category: dict[str, Bytes] = {}
        for number in np.unique(category[change != 0]).tolist():
            name = names.get(number, "other")
            curve = np.where(category == number, change, 0).cumsum()
            by_category[name] = by_category.get(name, 0) + curve
        return cls(found.allocated, found.reserved, by_category)

    @property
    def top(self) -> int:
        """index of the event at which allocated memory is highest"""
        return int(self.allocated.argmax())

    def categories(self, first: int, end: int) -> tuple[CategoryBytes, ...]:
        """What each category holds at the allocated peak within [first, end), and its own peak there."""
        at = first + int(self.allocated[first:end].argmax())
        found = {
            name: CategoryBytes(name, int(curve[at]), int(curve[first:end].max()))
            for name, curve in self.by_category.items()
        }
        return tuple(found[name] for name in sorted(found, key=_order) if found[name].peak_bytes)

    def whole(self, peak_allocated_bytes: int) -> tuple[CategoryBytes, ...]:
        """The categories at the peak of the run; what torch counted beyond them is ROUNDING. Sums to the peak."""
        if not len(self.allocated):
            return ()
        found = self.categories(0, len(self.allocated))
        rest = peak_allocated_bytes - sum(category.at_peak_bytes for category in found)
        return (*found, CategoryBytes(ROUNDING, rest, rest)) if rest > 0 else found

    def steps(self, marks: Sequence[StepMark]) -> tuple[StepPeak, ...]:
        """One entry a mark; what was held when the stretch began counts to it."""
        count: Counter[str] = Counter()
        found = []
        for mark in marks:
            if len(self.allocated):
                found.append(self._step(mark, count[mark.phase]))
                count[mark.phase] += 1
        return tuple(found)

    def _step(self, mark: StepMark, index: int) -> StepPeak:
        last = len(self.allocated) - 1
        first = min(max(mark.first_event - 1, 0), last)
        end = min(max(mark.end_event, first + 1), last + 1)
        return StepPeak(
            phase=mark.phase,
            index=index,
            peak_allocated_bytes=int(self.allocated[first:end].max()),
            peak_reserved_bytes=int(self.reserved[first:end].max()),
            live_at_end_bytes=int(self.allocated[end - 1]),
            by_category=self.categories(first, end),
        )


def _order(name: str) -> tuple[int, str]:
    return (CATEGORIES.index(name) if name in CATEGORIES else len(CATEGORIES), name)
