"""Every allocation of a trace as one row: what it was, when it was made, and when it was given back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
    address = np.concatenate([_column(older, "address", np.uint64), events.address[made]])
    requested = np.concatenate([_column(older, "requested_bytes", np.int64), events.size[made]])
    rounded = np.maximum(_MIN_BLOCK, -(-events.size[made] // _MIN_BLOCK) * _MIN_BLOCK)
    births = np.concatenate([np.full(len(older), BEFORE, np.int64), made])
    completed = _next(trace, births, address, Action.FREE_COMPLETED)
    freed = np.minimum(_next(trace, births, address, Action.FREE_REQUESTED), completed)
    pending = np.array([block.state == "active_pending_free" for block, _ in older], bool)
    freed[: len(older)][pending] = BEFORE
    return Allocations(
        made=births,
        freed=freed,
        completed=completed,
        address=address,
        requested=requested,
        size=np.concatenate([_column(older, "size_bytes", np.int64), rounded]),
        stack=np.concatenate([_column(older, "stack", np.int32), events.stack[made]]),
        category=np.concatenate([np.full(len(older), NONE, np.int32), events.category[made]]),
        stream=np.concatenate([np.array([s for _, s in older], np.uint64), events.stream[made]]),
    )


def _column(older: list[tuple[Block, int]], name: str, kind: type) -> npt.NDArray[np.generic]:
    return np.array([getattr(block, name) for block, _ in older], kind)


def _next(trace: Trace, births: Index, address: npt.NDArray[np.uint64], action: Action) -> Index:
    """[m] the first event of kind `action` at the address of each allocation behind its birth; n if there is none."""
    events = trace.events
    count = len(events)
    wanted = np.flatnonzero(events.action == action)
    if not len(wanted):
        return np.full(len(births), count, np.int64)
    known, code = np.unique(events.address[wanted], return_inverse=True)
    span = count + 1
    keys = np.sort(code.astype(np.int64) * span + wanted)
    own = np.searchsorted(known, address).clip(max=len(known) - 1)
    found = np.searchsorted(keys, own * span + births, "right").clip(max=len(keys) - 1)
    right = (known[own] == address) & (keys[found] // span == own) & (keys[found] % span > births)
    return np.where(right, keys[found] % span, count)
