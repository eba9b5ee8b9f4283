"""Finds blocks in a trace: which allocation an address belonged to at a place, and when it was freed."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.trace.marking.counts import Counted
from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace import Trace

    Index = npt.NDArray[np.int64]

# Torch's history and the phantom read one clock, each through a conversion of its own; 1 us apart in short runs.
_CLOCKS_US = (2, 10, 50)


class Blocks:
    """The allocations of one trace. A *place* is an index p: after the events before p, before event p."""

    def __init__(self, trace: Trace, counted: Counted | None = None) -> None:
        self.trace = trace
        self.counted = counted or Counted(trace.events)
        action = trace.events.action
        self.allocs: Index = np.flatnonzero(action == Action.ALLOC)
        """[m] event of each allocation, ascending"""
        self._freeing: Index = np.flatnonzero(action == Action.FREE_REQUESTED)
        self.changes: Index = np.sort(np.concatenate((self.allocs, self._freeing)))
        """[m + f] allocations and what gave them back, ascending"""
        self._known, code = np.unique(trace.events.address, return_inverse=True)
        self._code = code.astype(np.int64)
        self._span = len(action) + 1
        self._made = self._sorted(self.allocs)
        self._freed = self._sorted(self._freeing)
        self.times_us: Index = np.maximum.accumulate(trace.events.time_us)
        """[n] time of each event, ascending"""
        self.freed_at: Index = self._ends()
        """[m] event at which the program gave each allocation back; the number of events if it never did"""

    def place(self, allocations: int, frees: int) -> int:
        """The place after so many allocations and frees, completed frees included."""
        return self.counted.place(allocations, frees)[0]

    def at(self, addresses: Sequence[int], place: int) -> Index:
        """Numbers (into `allocs`) of the blocks that were live at `place` and contain one of `addresses`."""
        wanted = np.unique(np.array(addresses, np.uint64))
        found = self._owners(wanted, np.full(len(wanted), place))
        return found[found >= 0]

    def at_places(self, addresses: Sequence[int], places: Sequence[int]) -> Index:
        """As at(), with a place for each address; each number once, ascending."""
        found = self._owners(np.array(addresses, np.uint64), np.array(places, np.int64))
        return np.unique(found[found >= 0])

    def place_at(self, time_us: int) -> int:
        """The place at that time, completed frees included."""
        return self.counted.completed(int(np.searchsorted(self.times_us, time_us + _CLOCKS_US[0], "right")))

    def at_times(self, addresses: Sequence[int], times_us: Sequence[int]) -> Index:
        """For each address the number of the block that contained it at that time; -1 if none did.

        Times may be early by what two clocks differ.
        """
        wanted = np.array(addresses, np.uint64)
        found = np.full(len(wanted), -1, np.int64)
        for late in _CLOCKS_US:
            open_ = found < 0
            places = np.searchsorted(self.times_us, np.array(times_us, np.int64)[open_] + late, "right")
            found[open_] = self._owners(wanted[open_], places)
        return found

    def _owners(self, addresses: npt.NDArray[np.uint64], places: npt.NDArray[Any]) -> Index:
        if not len(self._made):
            return np.full(len(addresses), -1, np.int64)
        slot = np.searchsorted(self._known, addresses).clip(max=len(self._known) - 1)
        starts = self._known[slot] == addresses
        found = np.where(starts, self._last_before(slot, places), -1)
        found = np.where((found >= 0) & (self.freed_at[found] >= places), found, -1)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            found[missing] = self._containing(addresses[missing], places[missing])
        return found

    def _sorted(self, events: Index) -> Index:
        """Keys of `events`: by address, then by order."""
        return np.sort(self._code[events] * self._span + events)

    def _last_before(self, codes: npt.NDArray[Any], places: npt.NDArray[Any]) -> Index:
        """For each address code the number of its last allocation before its place; -1 if there is none."""
        found = np.searchsorted(self._made, codes * self._span + places) - 1
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

    def _containing(self, addresses: npt.NDArray[np.uint64], places: npt.NDArray[Any]) -> Index:
        """As _owners, for addresses within blocks: goes through the history once with a list of what is live."""
        events = self.trace.events
        changes = self.changes.tolist()
        makes = (events.action == Action.ALLOC).tolist()
        start, size = events.address.tolist(), events.size.tolist()
        number = dict(zip(self.allocs.tolist(), range(len(self.allocs)), strict=True))
        starts: list[int] = []
        owner: dict[int, int] = {}
        found = np.full(len(addresses), -1, np.int64)
        done = 0
        for query in np.argsort(places, kind="stable").tolist():
            while done < len(changes) and changes[done] < places[query]:
                event = changes[done]
                if makes[event]:
                    bisect.insort(starts, start[event])
                    owner[start[event]] = event
                elif owner.pop(start[event], None) is not None:
                    del starts[bisect.bisect_left(starts, start[event])]
                done += 1
            address = int(addresses[query])
            slot = bisect.bisect_right(starts, address) - 1
            if slot >= 0 and address < starts[slot] + size[owner[starts[slot]]]:
                found[query] = number[owner[starts[slot]]]
        return found
