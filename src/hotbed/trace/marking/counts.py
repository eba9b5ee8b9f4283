"""Counters of torch's allocator, and the place in a trace that belongs to a reading of them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hotbed.trace.model import Action, Events


class Counters(NamedTuple):
    """What torch.cuda.memory_stats() said of one device; counts since the process began, bytes."""

    allocations: int
    frees: int
    allocated_bytes: int
    reserved_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    device_mallocs: int
    device_frees: int
    retries: int


@dataclass(frozen=True)
class Piece:
    """Events [first_event, end_event) without a gap. Allocations and frees were counted `before` them and `after` them."""

    first_event: int
    end_event: int
    before: tuple[int, int]
    after: tuple[int, int]


class Counted:
    """How allocations and frees were counted along a trace: `pieces` in order, gaps between them."""

    def __init__(self, events: Events, pieces: tuple[Piece, ...] | None = None) -> None:
        allocs = np.flatnonzero(events.action == Action.ALLOC)
        frees = np.flatnonzero(events.action == Action.FREE_REQUESTED)
        self._pieces = pieces or (Piece(0, len(events), (0, 0), (len(allocs), len(frees))),)
        self._begins = [piece.before for piece in self._pieces]
        ends = [piece.end_event for piece in self._pieces]
        self._firsts = firsts = [piece.first_event for piece in self._pieces]
        self._kinds = [
            (kind, np.searchsorted(kind, firsts).tolist(), np.searchsorted(kind, ends).tolist())
            for kind in (allocs, frees)
        ]
        self._action = events.action
        pairs = zip(self._pieces, self._pieces[1:], strict=False)
        self._broken = [
            piece.first_event
            for before, piece in pairs
            if before.after != piece.before or before.end_event != piece.first_event
        ]
        """events before which others were not recorded"""

    def place(self, allocations: int, frees: int) -> tuple[int, bool]:
        """The place after so many allocations and frees, completed frees included; whether it lies in a gap.

        A place in a gap is the first one behind it, that is behind the events that bridge it.
        """
        counts = (allocations, frees)
        number = max(bisect_right(self._begins, counts) - 1, 0)
        # Both grow together: a piece that began with more frees is a later one too.
        while number and self._begins[number][1] > frees:
            number -= 1
        piece = self._pieces[number]
        if number + 1 < len(self._pieces) and (counts[0] > piece.after[0] or counts[1] > piece.after[1]):
            return self._pieces[number + 1].first_event, True
        place = piece.first_event
        for count, before, (events, firsts, ends) in zip(counts, piece.before, self._kinds, strict=True):
            wanted = min(firsts[number] + count - before, ends[number])
            if wanted > firsts[number]:
                place = max(place, int(events[wanted - 1]) + 1)
        return self.completed(place), counts[0] < piece.before[0] or counts[1] < piece.before[1]

    def unbroken_since(self, place: int) -> int:
        """The first place from which on to `place` nothing is missing or made up."""
        return self._firsts[max(bisect_right(self._firsts, place) - 1, 0)]

    def unbroken(self, first: int, end: int) -> bool:
        """Whether nothing is missing or made up among the events [first, end)."""
        at = bisect_right(self._broken, first)
        return at == len(self._broken) or self._broken[at] >= end

    def completed(self, place: int) -> int:
        """`place`, or the one behind the completed frees there."""
        while place < len(self._action) and self._action[place] == Action.FREE_COMPLETED:
            place += 1
        return place
