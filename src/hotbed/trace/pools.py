"""Which private pool each event belonged to, for recordings whose entries do not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.model import Events, PoolId, Segment

_NO_ADDRESS = (Action.OOM, Action.SNAPSHOT)
_BACKING = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)


def derived_pools(
    events: Events, segments: Sequence[Segment], pools: Sequence[PoolId]
) -> npt.NDArray[np.int32]:
    """[n] index into `pools`, worked out from the memory map at the end; NONE where that says nothing.

    An event belongs to the pool of the final segment around its address, unless the memory there was taken
    from the driver again after the event: then it lay in an earlier segment, whose pool nobody wrote down.
    """
    owner = np.full(len(events), NONE, np.int32)
    placed = np.flatnonzero(~np.isin(events.action, _NO_ADDRESS))
    order = placed[np.argsort(events.address[placed], kind="stable")]
    address = events.address[order]
    backing = np.flatnonzero(np.isin(events.action, _BACKING))
    taken = _last_taken(events, backing, address)
    for segment in segments:
        low, high = np.searchsorted(address, [np.uint64(segment.address), np.uint64(segment.end)])
        inside = order[low:high]
        owner[inside[inside >= taken[low:high]]] = pools.index(segment.pool)
    return owner


def _last_taken(
    events: Events, backing: npt.NDArray[np.intp], address: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """For each of the sorted addresses: index of the last event that took the memory there from the driver, or -1."""
    taken = np.full(len(address), -1, np.int64)
    starts = events.address[backing]
    ends = starts + events.size[backing].astype(np.uint64)
    lows, highs = np.searchsorted(address, starts), np.searchsorted(address, ends)
    for index, low, high in zip(backing.tolist(), lows.tolist(), highs.tolist(), strict=True):
        taken[low:high] = index
    return taken
