"""Which private pool each event belonged to, for recordings whose entries do not say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.model import Events, PoolId, Segment

_NO_ADDRESS: Final = (Action.OOM, Action.SNAPSHOT)
_BACKING: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)


def by_address(events: Events) -> npt.NDArray[np.intp]:
    """Indices of the events that have an address, by address and at the same address by time."""
    placed = np.flatnonzero(~np.isin(events.action, _NO_ADDRESS))
    return placed[np.argsort(events.address[placed], kind="stable")]


def derived_pools(
    events: Events, order: npt.NDArray[np.intp], segments: Sequence[Segment], pools: Sequence[PoolId]
) -> npt.NDArray[np.int32]:
    """[n] index into `pools`, worked out from the memory map at the end; NONE where that says nothing.

    `order` is by_address(events). An event belongs to the pool of the final segment around its address, unless
    the memory there was taken from the driver again after the event: then it lay in an earlier segment, whose
    pool nobody wrote down.
    """
    owner = np.full(len(events), NONE, np.int32)
    address = events.address[order]
    taken = _last_taken(events, address)
    for segment in segments:
        low, high = np.searchsorted(address, [np.uint64(segment.address), np.uint64(segment.end)])
        inside = order[low:high]
        owner[inside[inside >= taken[low:high]]] = pools.index(segment.pool)
    return owner


def _last_taken(events: Events, address: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """For each of the sorted addresses: index of the last event that took the memory there from the driver, or -1."""
    taken = np.full(len(address), -1, np.int64)
    starts, ends, last = _ranges_taken(events)
    lows, highs = np.searchsorted(address, starts), np.searchsorted(address, ends)
    for index, low, high in zip(last.tolist(), lows.tolist(), highs.tolist(), strict=True):
        taken[low:high] = index
    return taken


def _ranges_taken(
    events: Events,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.intp]]:
    """Start, end and last event of every range that was ever taken from the driver, by that event."""
    backing = np.flatnonzero(np.isin(events.action, _BACKING))
    starts = events.address[backing]
    ends = starts + events.size[backing].astype(np.uint64)
    # The driver hands the same ranges out again and again: only the last time of each matters.
    order = np.lexsort((backing, ends, starts))
    starts, ends, backing = starts[order], ends[order], backing[order]
    final = np.ones(len(backing), bool)
    final[:-1] = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
    starts, ends, backing = starts[final], ends[final], backing[final]
    order = np.argsort(backing)
    return starts[order], ends[order], backing[order]
