"""Finds blocks in a trace: which allocation an address belonged to at a place, and when it was freed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace import Trace

    Index = npt.NDArray[np.int64]


class Blocks:
    """The allocations of one trace. A *place* is an index p: after the events before p, before event p."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        action = trace.events.action
        self.allocs: Index = np.flatnonzero(action == Action.ALLOC)
        """[m] event of each allocation, ascending"""
        self._freeing: Index = np.flatnonzero(action == Action.FREE_REQUESTED)
        self._known, code = np.unique(trace.events.address, return_inverse=True)
        self._code = code.astype(np.int64)
        self._span = len(action) + 1
        self._made = self._sorted(self.allocs)
        self._freed = self._sorted(self._freeing)
        self.freed_at: Index = self._ends()
        """[m] event at which the program gave each allocation back; the number of events if it never did"""

    def place(self, allocations: int, frees: int) -> int:
        """The place after so many allocations and frees, completed frees included."""
        place = 0
        for count, events in ((allocations, self.allocs), (frees, self._freeing)):
            if count and len(events):
                place = max(place, int(events[min(count, len(events)) - 1]) + 1)
        action = self.trace.events.action
        while place < len(action) and action[place] == Action.FREE_COMPLETED:
            place += 1
        return place

    def at(self, addresses: Sequence[int], place: int) -> Index:
        """Numbers (into `allocs`) of the blocks that were live at `place` and contain one of `addresses`."""
        wanted = np.unique(np.array(addresses, np.uint64))
        slot = np.searchsorted(self._known, wanted).clip(max=max(len(self._known) - 1, 0))
        starts = self._known[slot] == wanted if len(self._known) else np.zeros(len(wanted), bool)
        found = self._last_before(slot[starts], place)
        live = found[found >= 0]
        live = live[self.freed_at[live] >= place]
        inside = [self._containing(int(address), place) for address in wanted[~starts]]
        return np.concatenate((live, np.array([number for number in inside if number >= 0], np.int64)))

    def latest(self, address: int, time_us: int) -> int:
        """Number of the last allocation that contains `address` and was made by `time_us`; -1 if there is none."""
        events = self.trace.events
        start, size = events.address[self.allocs], events.size[self.allocs].astype(np.uint64)
        made = events.time_us[self.allocs] <= time_us
        found = np.flatnonzero(
            made & (start <= np.uint64(address)) & (np.uint64(address) < start + np.maximum(size, 1))
        )
        return int(found[-1]) if len(found) else -1

    def _sorted(self, events: Index) -> Index:
        """Keys of `events`: by address, then by order."""
        return np.sort(self._code[events] * self._span + events)

    def _last_before(self, codes: npt.NDArray[Any], place: int) -> Index:
        """For each address code the number of its last allocation before `place`; -1 if there is none."""
        if not len(self._made):
            return np.full(len(codes), -1, np.int64)
        found = np.searchsorted(self._made, codes * self._span + place) - 1
        key = self._made[found.clip(0)]
        right = (found >= 0) & (key // self._span == codes)
        return np.where(right, np.searchsorted(self.allocs, key % self._span), -1)

    def _ends(self) -> Index:
        code = self._code[self.allocs]
        if not len(self._freed):
            return np.full(len(self.allocs), self._span - 1, np.int64)
        found = np.searchsorted(self._freed, code * self._span + self.allocs)
        key = self._freed[found.clip(max=len(self._freed) - 1)]
        right = (found < len(self._freed)) & (key // self._span == code)
        return np.where(right, key % self._span, self._span - 1)

    def _containing(self, address: int, place: int) -> int:
        """A storage may begin inside a block: number of that block, -1 if there is none."""
        events = self.trace.events
        start = events.address[self.allocs]
        end = start + events.size[self.allocs].astype(np.uint64)
        live = (self.allocs < place) & (self.freed_at >= place)
        found = np.flatnonzero(live & (start <= np.uint64(address)) & (np.uint64(address) < end))
        return int(found[-1]) if len(found) else -1
