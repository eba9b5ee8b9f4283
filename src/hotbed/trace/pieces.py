"""When each piece of device memory was the allocator's."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.trace.model import Trace

BEFORE: Final = -1
"""Event that stands for "before the recording began"."""
_TAKEN: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_GIVEN: Final = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
_SMALL_SEGMENT: Final = 2 << 20
"""segments of the small pool have this size. Source: kSmallBuffer, allocator-semantics 1.2"""


@dataclass(frozen=True)
class Piece:
    """Device memory that the allocator had from event `taken` (BEFORE: from the beginning) up to event `returned` (the
    number of events if it never went back). Bytes."""

    address: int
    size_bytes: int
    taken: int
    returned: int
    stream: int
    pool: int
    """index into Trace.pools, or NONE"""
    is_large: bool
    is_expandable: bool

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


def pieces(trace: Trace) -> list[Piece]:
    """Every piece of device memory of `trace`, by address, then time; expandable segments as the ranges that were mapped.

    What was given back in part is cut there.
    """
    walk = _Walk()
    for piece in _before(trace):
        walk.take(piece)
    # Plain numbers: an enum is slow where there are hundred thousands of segments.
    given, mapped = tuple(map(int, _GIVEN)), int(Action.SEGMENT_MAP)
    for index, action, address, size, stream, pool in _changes(trace):
        if action in given:
            walk.give_back(address, address + size, index)
        else:
            large, expandable = size > _SMALL_SEGMENT, action == mapped
            walk.take(Piece(address, size, index, len(trace.events), stream, pool, large, expandable))
    return sorted([*walk.done, *walk.open.values()], key=lambda piece: (piece.address, piece.taken))


def _changes(trace: Trace) -> Iterator[tuple[int, ...]]:
    """Index, action, address, size, stream and pool of each event that takes memory or gives it back."""
    events = trace.events
    rows = np.flatnonzero(np.isin(events.action, _TAKEN + _GIVEN))
    columns = (events.action, events.address, events.size, events.stream, events.pool)
    return zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True)


def _before(trace: Trace) -> Iterator[Piece]:
    numbers = {pool: index for index, pool in enumerate(trace.pools)}
    for segment in trace.initial_segments:
        yield Piece(
            address=segment.address,
            size_bytes=segment.size_bytes,
            taken=BEFORE,
            returned=len(trace.events),
            stream=segment.stream,
            pool=numbers.get(segment.pool, NONE),
            is_large=segment.is_large,
            is_expandable=segment.is_expandable,
        )


class _Walk:
    """The pieces that are open now, by address, and those that were given back."""

    def __init__(self) -> None:
        self.open: dict[int, Piece] = {}
        self.bases: list[int] = []
        self.done: list[Piece] = []

    def take(self, piece: Piece) -> None:
        if piece.address not in self.open:
            bisect.insort(self.bases, piece.address)
        self.open[piece.address] = piece

    def give_back(self, low: int, high: int, event: int) -> None:
        """Ends what is open in [low, high); what sticks out on either side stays open."""
        whole = self.open.get(low)
        if whole is not None and whole.size_bytes == high - low:
            del self.open[low], self.bases[bisect.bisect_left(self.bases, low)]
            self.done.append(replace(whole, returned=event))
            return
        first = max(bisect.bisect_right(self.bases, low) - 1, 0)
        touched = [
            base
            for base in self.bases[first : bisect.bisect_left(self.bases, high)]
            if self.open[base].end > low
        ]
        for base in touched:
            piece = self.open.pop(base)
            self.bases.remove(base)
            for start, stop in ((base, low), (high, piece.end)):
                if start < stop:
                    self.take(replace(piece, address=start, size_bytes=stop - start))
            start, stop = max(base, low), min(piece.end, high)
            self.done.append(replace(piece, address=start, size_bytes=stop - start, returned=event))
