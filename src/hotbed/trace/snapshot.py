"""Turns a decoded torch snapshot into the Trace of each device, and says in words what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotbed.errors import TraceError
from hotbed.trace.allocator_settings import roundup_table, settings_string
from hotbed.trace.beginning import beginning
from hotbed.trace.gaps import gaps
from hotbed.trace.model import DEFAULT_POOL, NONE, Events, Trace
from hotbed.trace.numbering import canonical
from hotbed.trace.pools import by_address, derived_pools
from hotbed.trace.raw import no_entries
from hotbed.trace.segments import devices_of, segments_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.trace.raw import RawColumns, RawSnapshot


def devices_in(raw: RawSnapshot) -> dict[int, int]:
    """Device → number of events, for every device that has events or memory, the one with most events first.

    Raises TraceError where there is none.
    """
    memory = devices_of(raw.segments)
    counts = {i: len(columns) for i, columns in enumerate(raw.devices)}
    known = {*memory, *(i for i, count in counts.items() if count)}
    if not known:
        raise TraceError(
            "the snapshot is empty: it has no events and no memory of any device",
            hint="call torch.cuda.memory._record_memory_history() before the first allocation, dump after the work",
        )
    order = sorted(known, key=lambda i: (-counts.get(i, 0), -memory.get(i, 0), i))
    return {i: counts.get(i, 0) for i in order}


def trace_of(raw: RawSnapshot, device: int, source: str) -> Trace:
    """The history of `device` in the file `source`."""
    columns = raw.devices[device] if device < len(raw.devices) else no_entries()
    segments = segments_of(raw.segments, device)
    pools = tuple(dict.fromkeys([*raw.pools, DEFAULT_POOL, *(segment.pool for segment in segments)]))
    events = _events(columns, columns.pool)
    order = by_address(events)
    if (columns.pool == NONE).any():
        derived = derived_pools(events, order, segments, pools)
        events = _events(columns, np.where(columns.pool == NONE, derived, columns.pool))
    start = beginning(events, order, segments, pools, roundup_table(raw.settings))
    return canonical(
        Trace(
            source=source,
            device=device,
            events=events,
            segments=segments,
            initial_segments=start.segments,
            pools=pools,
            stacks=tuple(raw.stacks),
            strings=tuple(raw.strings),
            settings=settings_string(raw.settings),
            other_devices=_others(raw, device),
            missing=gaps(events, segments, start),
        )
    )


def _others(raw: RawSnapshot, device: int) -> tuple[int, ...]:
    return tuple(i for i, columns in enumerate(raw.devices) if len(columns) and i != device)


def _events(columns: RawColumns, pool: npt.NDArray[np.int32]) -> Events:
    nothing = np.full(len(columns), NONE, np.int32)
    return Events(
        action=columns.action,
        address=columns.address,
        size=columns.size,
        stream=columns.stream,
        pool=pool,
        time_us=columns.time_us,
        stack=columns.stack,
        metadata=columns.metadata,
        step=nothing,
        category=nothing,
        compile_context=columns.compile_context,
    )
