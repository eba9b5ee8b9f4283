"""Turns a decoded torch snapshot into the Trace of one device, and says in words what it lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hotbed.errors import TraceError
from hotbed.trace.allocator_settings import settings_string
from hotbed.trace.beginning import beginning
from hotbed.trace.gaps import gaps
from hotbed.trace.model import DEFAULT_POOL, NONE, Events, Trace
from hotbed.trace.pools import by_address, derived_pools
from hotbed.trace.raw import no_entries
from hotbed.trace.segments import devices_of, segments_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.model import PoolId, Segment
    from hotbed.trace.raw import RawColumns, RawSnapshot

    Index = npt.NDArray[np.int32]

T = TypeVar("T")


def trace_from_raw(raw: RawSnapshot, source: str, device: int | None) -> Trace:
    """The history of `device` (None: the one with most events, then with most memory) of the file `source`.

    Tables hold what this device uses, in order of first use: events first, then blocks. Raises TraceError
    where the file holds nothing of that device or nothing at all.
    """
    chosen = _choose(raw, device)
    columns = raw.devices[chosen] if chosen < len(raw.devices) else no_entries()
    segments = segments_of(raw.segments, chosen)
    pools = _pools(raw, columns, segments)
    stack, used_stacks = _renumbered(columns.stack)
    segments, used_stacks = _restacked(segments, used_stacks)
    words, used_strings = _renumbered(np.concatenate((columns.metadata, columns.compile_context)))
    events = _events(columns, stack, words, _recorded_pools(raw, columns, pools))
    order = by_address(events)
    if (events.pool == NONE).any():
        derived = derived_pools(events, order, segments, pools)
        events = replace(events, pool=np.where(events.pool == NONE, derived, events.pool))
    start = beginning(events, order, segments)
    return Trace(
        source=source,
        device=chosen,
        events=events,
        segments=segments,
        initial_segments=start.segments,
        pools=pools,
        stacks=_picked(raw.stacks, used_stacks),
        strings=_picked(raw.strings, used_strings),
        settings=settings_string(raw.settings),
        other_devices=tuple(i for i, other in enumerate(raw.devices) if len(other) and i != chosen),
        missing=gaps(events, segments, start),
    )


def _choose(raw: RawSnapshot, device: int | None) -> int:
    memory = devices_of(raw.segments)
    known = sorted({*memory, *(i for i, columns in enumerate(raw.devices) if len(columns))})
    if not known:
        raise TraceError(
            "the snapshot is empty: it has no events and no memory of any device",
            hint="call torch.cuda.memory._record_memory_history() before the first allocation, dump after the work",
        )
    if device is None:
        counts = dict(enumerate(map(len, raw.devices)))
        return max(known, key=lambda i: (counts.get(i, 0), memory.get(i, 0), -i))
    if device not in known:
        listed = ", ".join(map(str, known))
        raise TraceError(
            f"the snapshot holds nothing of device {device}", hint=f"devices in this file: {listed}"
        )
    return device


def _pools(raw: RawSnapshot, columns: RawColumns, segments: Sequence[Segment]) -> tuple[PoolId, ...]:
    _, used = _renumbered(columns.pool)
    named = [segment.pool for segment in segments]
    return tuple(dict.fromkeys([DEFAULT_POOL, *_picked(raw.pools, used), *named]))


def _recorded_pools(raw: RawSnapshot, columns: RawColumns, pools: Sequence[PoolId]) -> Index:
    if not raw.pools:
        return columns.pool
    # The last row serves NONE (-1): nothing recorded stays nothing recorded.
    table = np.array([*(pools.index(pool) if pool in pools else NONE for pool in raw.pools), NONE], np.int32)
    return table[columns.pool]


def _events(columns: RawColumns, stack: Index, words: Index, pool: Index) -> Events:
    n = len(columns)
    nothing = np.full(n, NONE, np.int32)
    contexts = words[n:]
    return Events(
        action=columns.action,
        address=columns.address,
        size=columns.size,
        stream=columns.stream,
        pool=pool,
        time_us=columns.time_us,
        stack=stack,
        metadata=words[:n],
        step=nothing,
        category=nothing,
        compile_context=contexts if (contexts != NONE).any() else None,
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
    new[NONE] = NONE
    changed = []
    for segment in segments:
        for block in segment.blocks:
            new.setdefault(block.stack, len(new) - 1)
        blocks = tuple(replace(block, stack=new[block.stack]) for block in segment.blocks)
        changed.append(replace(segment, blocks=blocks))
    del new[NONE]
    return tuple(changed), list(new)


def _picked(table: Sequence[T], indices: Sequence[int]) -> tuple[T, ...]:
    return tuple(table[index] for index in indices)
