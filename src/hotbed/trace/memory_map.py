"""The memory map at any place of a trace: segments, live blocks and the holes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.beginning import cut, fill, put_back, segment_of
from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotbed.trace.model import Block, Segment, Trace


def segments_at(trace: Trace, place: int) -> list[Segment]:
    """The segments behind the first `place` events of `trace`, by address, without their blocks."""
    found = [*_whole_segments(trace, place), *_expandable_runs(trace, place)]
    return sorted(found, key=lambda segment: segment.address)


def _whole_segments(trace: Trace, place: int) -> Iterator[Segment]:
    """Those that come and go in one piece: what happened last at an address tells whether one is there."""
    events = trace.events
    moves = np.flatnonzero(np.isin(events.action[:place], (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE)))
    addresses, last = np.unique(events.address[moves][::-1], return_index=True)
    final = moves[::-1][last]
    moved = set(addresses.tolist())
    yield from (run for run in trace.initial_segments if not run.is_expandable and run.address not in moved)
    for index in final[events.action[final] == Action.SEGMENT_ALLOC].tolist():
        yield segment_of(events, index, trace.pools)


def _expandable_runs(trace: Trace, place: int) -> list[Segment]:
    """Those made of pages, one run of pages for each stretch of mapped memory."""
    events = trace.events
    runs = [run for run in trace.initial_segments if run.is_expandable]
    bases = [run.address for run in runs]
    for index in np.flatnonzero(
        np.isin(events.action[:place], (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP))
    ).tolist():
        segment = segment_of(events, index, trace.pools)
        if events.action[index] == Action.SEGMENT_MAP:
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
