"""Gives the tables of a trace their one order: what is used, counted up in order of first use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hotbed.trace.model import DEFAULT_POOL, NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.model import PoolId, Segment, Trace

    Index = npt.NDArray[np.int32]

T = TypeVar("T")


def canonical(trace: Trace) -> Trace:
    """`trace` with tables that hold exactly what it uses, so that equal histories compare equal.

    Order of first use: events before the map at the end before the map at the beginning; for strings all
    metadata before compile contexts before categories. The default pool is always the first pool.
    """
    events = trace.events
    stack, stacks = _renumbered(events.stack)
    segments, stacks = _restacked(trace.segments, stacks)
    initial, stacks = _restacked(trace.initial_segments, stacks)
    n = len(events)
    contexts = np.full(n, NONE, np.int32) if events.compile_context is None else events.compile_context
    words, strings = _renumbered(np.concatenate((events.metadata, contexts, events.category)))
    contexts = words[n : 2 * n]
    pool, pools = _repooled(events.pool, trace.pools, (*segments, *initial))
    events = replace(
        events,
        stack=stack,
        metadata=words[:n],
        compile_context=contexts if (contexts != NONE).any() else None,
        category=words[2 * n :],
        pool=pool,
    )
    return replace(
        trace,
        events=events,
        segments=segments,
        initial_segments=initial,
        pools=pools,
        stacks=_picked(trace.stacks, stacks),
        strings=_picked(trace.strings, strings),
    )


def _renumbered(column: Index) -> tuple[Index, list[int]]:
    """`column` with its indices counted up from 0 in order of first use, and the old index of each new one."""
    size = int(column.max(initial=NONE)) + 1
    if size == 0:
        return column, []
    # Of repeated targets the last assignment stands, so backwards that is the first use. Slot -1 serves NONE.
    first = np.full(size + 1, len(column))
    first[column[::-1]] = np.arange(len(column))[::-1]
    first[-1] = len(column)
    old = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(column))]
    table = np.full(size + 1, NONE, np.int32)
    table[old] = np.arange(len(old), dtype=np.int32)
    return table[column], old.tolist()


def _restacked(segments: Sequence[Segment], used: list[int]) -> tuple[tuple[Segment, ...], list[int]]:
    """`segments` with their stacks renumbered like `used`, and `used` with their own stacks behind it."""
    new = {old: index for index, old in enumerate(used)}
    changed = []
    for segment in segments:
        for block in segment.blocks:
            if block.stack != NONE:
                new.setdefault(block.stack, len(new))
        blocks = tuple(replace(block, stack=new.get(block.stack, NONE)) for block in segment.blocks)
        changed.append(replace(segment, blocks=blocks))
    return tuple(changed), list(new)


def _repooled(
    column: Index, pools: Sequence[PoolId], segments: Sequence[Segment]
) -> tuple[Index, tuple[PoolId, ...]]:
    _, used = _renumbered(column)
    new = tuple(dict.fromkeys([DEFAULT_POOL, *_picked(pools, used), *(segment.pool for segment in segments)]))
    # The last row serves NONE (-1).
    table = np.array([*(new.index(pool) if pool in new else NONE for pool in pools), NONE], np.int32)
    return table[column], new


def _picked(table: Sequence[T], indices: Sequence[int]) -> tuple[T, ...]:
    return tuple(table[index] for index in indices)
