"""The memory map at any place of a trace: segments, live blocks and the holes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.trace.beginning import cut, fill, put_back, segment_of
from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.trace.model import Block, Segment, Trace

_TAKEN: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_GIVEN: Final = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


def segments_at(trace: Trace, place: int) -> list[Segment]:
    """The segments behind the first `place` events of `trace`, by address, without their blocks."""
    runs = [*trace.initial_segments]
    bases = [segment.address for segment in runs]
    events = trace.events
    for index in np.flatnonzero(np.isin(events.action[:place], _TAKEN + _GIVEN)).tolist():
        segment = segment_of(events, index, trace.pools)
        if events.action[index] in _TAKEN:
            put_back(runs, bases, segment)
        else:
            cut(runs, bases, segment.address, segment.end)
    return runs


def memory_map(runs: Sequence[Segment], live: Sequence[Block]) -> tuple[Segment, ...]:
    """`runs` with the blocks of `live` (by address) that lie in them, and free blocks in between."""
    addresses = np.array([block.address for block in live], np.uint64)
    bases = np.array([run.address for run in runs], np.uint64)
    ends = np.array([run.end for run in runs], np.uint64)
    firsts, lasts = np.searchsorted(addresses, bases), np.searchsorted(addresses, ends)
    return tuple(
        fill(run, list(live[first:last]))
        for run, first, last in zip(runs, firsts.tolist(), lasts.tolist(), strict=True)
    )
