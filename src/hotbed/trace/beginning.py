"""The memory map when a recording began, worked out backwards from the map at its end."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.trace.model import DEFAULT_POOL, NONE, Action, Block, Segment
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from hotbed.trace.model import Events, PoolId

_LIFE: Final = (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)
_SEGMENT_EVENTS: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_FREE, Action.SEGMENT_MAP, Action.SEGMENT_UNMAP)
# Plain numbers: an enum is slow where there are hundred thousands of segments.
_PAGES: Final = (int(Action.SEGMENT_UNMAP), int(Action.SEGMENT_MAP))
_STATE: Final = {
    int(Action.FREE_REQUESTED): "active_allocated",
    int(Action.FREE_COMPLETED): "active_pending_free",
}
_MIN_BLOCK: Final = 512
# Segments of the small pool have 2 MiB, those of the large pool, and its pages, 10 MiB and more.
_SMALLEST_LARGE: Final = 10 * MIB


@dataclass(frozen=True)
class Beginning:
    """The map before the first event. `unplaced`: blocks alive then whose segment is not known."""

    segments: tuple[Segment, ...]
    live_blocks: int
    live_bytes: int
    unplaced: int


def beginning(
    events: Events,
    order: npt.NDArray[np.intp],
    final: Sequence[Segment],
    pools: Sequence[PoolId],
    divisions: Mapping[int, int],
) -> Beginning:
    """Undoes `events` from the `final` map; `order` is pools.by_address(events), `pools` what events.pool points into.

    `divisions` is the table roundup_power2_divisions, {MiB: divisions}. Source of the rules: the caching allocator merges
    free neighbours at once, and in a segment of the large pool (not expandable) every block is larger than
    1 MiB, so a smaller gap belongs to the block before it.
    """
    if not len(events):
        live = [block for segment in final for block in segment.blocks if block.state != "inactive"]
        return Beginning(tuple(final), len(live), sum(block.requested_bytes for block in live), 0)
    first = _first_mentions(events, order)
    ghosts = [*_freed_ghosts(events, first, divisions), *_surviving_ghosts(events, first, final)]
    ghosts.sort(key=lambda block: block.address)
    placed = [fill(run, ghosts) for run in _segments_before(events, final, pools)]
    inside = sum(block.state != "inactive" for segment in placed for block in segment.blocks)
    return Beginning(
        segments=tuple(placed),
        live_blocks=len(ghosts),
        live_bytes=sum(block.requested_bytes for block in ghosts),
        unplaced=len(ghosts) - inside,
    )


def _first_mentions(events: Events, order: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Index of the first alloc or free at each address that has one, by address."""
    life = order[np.isin(events.action[order], _LIFE)]
    address = events.address[life]
    first = np.ones(len(life), bool)
    first[1:] = address[1:] != address[:-1]
    return life[first]


def _freed_ghosts(
    events: Events, first: npt.NDArray[np.intp], divisions: Mapping[int, int]
) -> Iterable[Block]:
    """Blocks whose first entry is a free: they were alive before the history begins."""
    for index in first[events.action[first] != Action.ALLOC].tolist():
        requested = int(events.size[index])
        rounded = _rounded(requested, divisions)
        state = _STATE[int(events.action[index])]
        yield Block(int(events.address[index]), rounded, requested, state, int(events.stack[index]))


def _rounded(requested: int, divisions: Mapping[int, int]) -> int:
    """The smallest block that serves a request. Source: allocator-semantics 1.3."""
    power = 1 << max(requested.bit_length() - 1, 0)
    parts = divisions.get(min(max(power // MIB, 1), max(divisions, default=1)), 0)
    unit = power // parts if parts > 1 and requested > _MIN_BLOCK * parts else _MIN_BLOCK
    return max(_MIN_BLOCK, -(-requested // unit) * unit)


def _surviving_ghosts(
    events: Events, first: npt.NDArray[np.intp], final: Sequence[Segment]
) -> Iterable[Block]:
    """Blocks alive at the end that no entry mentions."""
    mentioned = set(events.address[first].tolist())
    for segment in final:
        for block in segment.blocks:
            if block.state != "inactive" and block.address not in mentioned:
                yield block


def _segments_before(events: Events, final: Sequence[Segment], pools: Sequence[PoolId]) -> list[Segment]:
    """The segments that existed before the first event, empty, by address."""
    bases = [segment.address for segment in final]
    runs = [replace(segment, blocks=()) for segment in final]
    rows = np.flatnonzero(np.isin(events.action, _SEGMENT_EVENTS))[::-1]
    taken = np.isin(events.action[rows], (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP))
    columns = (rows, taken, events.address[rows], events.size[rows])
    for index, is_taken, address, size in zip(*(column.tolist() for column in columns), strict=True):
        if is_taken:
            cut(runs, bases, address, address + size)
        else:
            put_back(runs, bases, segment_of(events, index, pools))
    return runs


def segment_of(events: Events, index: int, pools: Sequence[PoolId]) -> Segment:
    """What event `index` took from the driver or gave back. Only its size tells whether it was of the large pool."""
    size = int(events.size[index])
    expandable = int(events.action[index]) in _PAGES
    pool = int(events.pool[index])
    return Segment(
        address=int(events.address[index]),
        size_bytes=size,
        stream=int(events.stream[index]),
        is_large=size >= _SMALLEST_LARGE,
        is_expandable=expandable,
        pool=DEFAULT_POOL if pool == NONE else pools[pool],
        blocks=(),
    )


def cut(runs: list[Segment], bases: list[int], low: int, high: int) -> None:
    """Takes [low, high) out of the run around it; does nothing where no run covers it."""
    at = bisect.bisect_right(bases, low) - 1
    if at < 0 or runs[at].end < high:
        return
    run = runs[at]
    left = [(run.address, low)] if run.address < low else []
    right = [(high, run.end)] if high < run.end else []
    pieces = [replace(run, address=start, size_bytes=end - start) for start, end in left + right]
    runs[at : at + 1] = pieces
    bases[at : at + 1] = [piece.address for piece in pieces]


def put_back(runs: list[Segment], bases: list[int], returned: Segment) -> None:
    """Adds memory from the driver; pages join the runs of their stream and pool that they touch."""
    at = bisect.bisect_left(bases, returned.address)
    first = last = at
    merged = returned
    if at > 0 and _continues(runs[at - 1], merged):
        first, before = at - 1, runs[at - 1]
        merged = replace(before, size_bytes=before.size_bytes + merged.size_bytes)
    if at < len(runs) and _continues(merged, runs[at]):
        last = at + 1
        merged = replace(
            merged, size_bytes=merged.size_bytes + runs[at].size_bytes, is_large=runs[at].is_large
        )
    runs[first:last] = [merged]
    bases[first:last] = [merged.address]


def _continues(left: Segment, right: Segment) -> bool:
    expandable = left.is_expandable and right.is_expandable
    return expandable and left.end == right.address and (left.stream, left.pool) == (right.stream, right.pool)


def fill(run: Segment, ghosts: list[Block]) -> Segment:
    """`run` with the blocks of `ghosts` (by address) that lie in it, and free blocks in between."""
    addresses = [ghost.address for ghost in ghosts]
    inside = ghosts[bisect.bisect_left(addresses, run.address) : bisect.bisect_left(addresses, run.end)]
    blocks: list[Block] = []
    position = run.address
    for ghost, limit in zip(inside, [*(block.address for block in inside[1:]), run.end], strict=False):
        if position < ghost.address:
            blocks.append(Block(position, ghost.address - position, 0, "inactive", NONE))
        gap = limit - ghost.address - ghost.size_bytes
        given_away = gap if run.is_large and not run.is_expandable and gap <= MIB else min(gap, 0)
        blocks.append(replace(ghost, size_bytes=ghost.size_bytes + given_away))
        position = ghost.address + blocks[-1].size_bytes
    if position < run.end:
        blocks.append(Block(position, run.end - position, 0, "inactive", NONE))
    return replace(run, blocks=tuple(blocks))
