"""Every allocation of a trace as one row: what it was, when it was made, and when it was given back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.trace import Trace
    from hotbed.trace.model import Block

    Index = npt.NDArray[np.int64]

BEFORE: Final = -1
"""`made` of blocks that are older than the trace"""
_MIN_BLOCK: Final = 512


@dataclass(frozen=True)
class Allocations:
    """Columns of equal length m, by `made`. A *place* p is behind the events before p, before event p.

    `made` is the event (BEFORE for blocks older than the trace), `freed` the event at which the program gave the block
    back and `completed` the one at which it became free; the number of events where that never happened.
    """

    made: Index
    freed: Index
    completed: Index
    address: npt.NDArray[np.uint64]
    requested: Index
    size: Index
    """bytes rounded up to 512, as blocks are; those older than the trace as they were"""
    stack: npt.NDArray[np.int32]
    category: npt.NDArray[np.int32]
    stream: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.made)

    def live_at(self, place: int) -> npt.NDArray[np.bool_]:
        """[m] which allocations the program holds at `place`."""
        return (self.made < place) & (self.freed >= place)

    def active_at(self, place: int) -> npt.NDArray[np.bool_]:
        """[m] which allocations occupy memory at `place`: held, or waiting for another stream."""
        return (self.made < place) & (self.completed >= place)


def allocations_of(trace: Trace) -> Allocations:
    """The allocations of `trace`, those of its first memory map included."""
    events = trace.events
    older = [
        (block, segment.stream)
        for segment in trace.initial_segments
        for block in segment.blocks
        if block.state != "inactive"
    ]
    made = np.flatnonzero(events.action == Action.ALLOC)
    rounded = np.maximum(_MIN_BLOCK, -(-events.size[made] // _MIN_BLOCK) * _MIN_BLOCK)
    old_addresses = _column(older, "address", np.uint64)
    freed, completed = _ends(trace, old_addresses)
    pending = np.array([block.state == "active_pending_free" for block, _ in older], bool)
    freed = np.minimum(freed, completed)
    freed[: len(older)][pending] = BEFORE
    return Allocations(
        made=np.concatenate([np.full(len(older), BEFORE, np.int64), made]),
        freed=freed,
        completed=completed,
        address=np.concatenate([old_addresses, events.address[made]]),
        requested=np.concatenate([_column(older, "requested_bytes", np.int64), events.size[made]]),
        size=np.concatenate([_column(older, "size_bytes", np.int64), rounded]),
        stack=np.concatenate([_column(older, "stack", np.int32), events.stack[made]]),
        category=np.concatenate([np.full(len(older), NONE, np.int32), events.category[made]]),
        stream=np.concatenate([np.array([s for _, s in older], np.uint64), events.stream[made]]),
    )


def _column(older: list[tuple[Block, int]], name: str, kind: type) -> npt.NDArray[Any]:
    return np.array([getattr(block, name) for block, _ in older], kind)


def _ends(trace: Trace, older: npt.NDArray[np.uint64]) -> tuple[Index, Index]:
    """[m] for each allocation, those at the addresses `older` first: the event that asks for its end and the one that
    completes it, which are the next of their kind at its address; the number of events where there is none."""
    events = trace.events
    lives = np.flatnonzero(events.action <= Action.FREE_COMPLETED)
    kind = np.concatenate([np.full(len(older), Action.ALLOC, np.uint8), events.action[lives]])
    address = np.concatenate([older, events.address[lives]])
    order = np.argsort(address, kind="stable")
    kind_there, address_there = kind[order], address[order]
    births = np.flatnonzero(kind_there == Action.ALLOC)
    number = np.cumsum(kind == Action.ALLOC)[order[births]] - 1
    ends = []
    for wanted in (Action.FREE_REQUESTED, Action.FREE_COMPLETED):
        found = np.full(len(births), len(events), np.int64)
        places = np.flatnonzero(kind_there == wanted)
        if len(places):
            following = places[np.searchsorted(places, births).clip(max=len(places) - 1)]
            right = (following > births) & (address_there[following] == address_there[births])
            found[number[right]] = lives[order[following[right]] - len(older)]
        ends.append(found)
    return ends[0], ends[1]
