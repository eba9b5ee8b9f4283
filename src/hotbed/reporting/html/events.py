"""The events of a report as columns: blocks by what they have in common, frees by how long ago the block was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.trace.model import Action
from hotbed.trace.pieces import pieces

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.findings.allocations import Allocations
    from hotbed.findings.case import Case

    Column = npt.NDArray[Any]

FREED_AT_ONCE: Final = 11
"""Action of the page: free_requested and the free_completed of the same block right behind it, as one"""


@dataclass(frozen=True)
class Window:
    """The events [first, end) that the page holds one by one."""

    first: int
    end: int


def event_columns(case: Case, window: Window) -> dict[str, Column]:
    """Everything that happened in `window`, and what was there when it began. The page's model.js reads it back."""
    made = case.allocations
    there = np.flatnonzero((made.made < window.end) & (made.completed >= window.first))
    return {
        **_blocks(case, made, there, window),
        **_happenings(case, made, there, window),
        **_pieces(case, window),
    }


def _blocks(case: Case, made: Allocations, there: Column, window: Window) -> dict[str, Column]:
    """The blocks; those older than the window first, with their event and whether they are pending."""
    older = int(np.searchsorted(made.made[there], window.first))
    sizes, size = _ranked(made.requested[there])
    rounding = made.size[there] - made.requested[there]
    addresses, address = _ranked(made.address[there].astype(np.int64))
    keys = (made.stack[there].astype(np.int64) + 1) * (len(case.trace.strings) + 1) + made.category[there] + 1
    streams, stream = np.unique(made.stream[there], return_inverse=True)
    sites, site = _ranked(keys * max(len(streams), 1) + stream)
    keys, site_stream = sites // max(len(streams), 1), sites % max(len(streams), 1)
    return {
        "olderMade": made.made[there[:older]],
        "olderPending": made.freed[there[:older]] < window.first,
        "olderRounding": rounding[:older],
        "sizes": sizes,
        "size": size,
        "addresses": addresses,
        "address": address,
        "siteStack": keys // (len(case.trace.strings) + 1) - 1,
        "siteCategory": keys % (len(case.trace.strings) + 1) - 1,
        "siteStream": streams[site_stream] if len(streams) else site_stream,
        "site": site,
    }


def _ranked(values: Column) -> tuple[Column, Column]:
    """The different values, in order of first use, and for each element which one it is: neighbours look alike."""
    different, first, number = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return different[order], rank[number]


def _happenings(case: Case, made: Allocations, there: Column, window: Window) -> dict[str, Column]:
    """One row an event, a free that is complete at once as one; what frees refer to counts back from the newest block."""
    events = case.trace.events
    stretch = slice(window.first, window.end)
    action = events.action[stretch].copy()
    owner = _owners(made, there, window)
    at_once = np.zeros(len(action), bool)
    at_once[:-1] = (
        (action[:-1] == Action.FREE_REQUESTED)
        & (action[1:] == Action.FREE_COMPLETED)
        & (owner[:-1] == owner[1:])
        & (owner[1:] >= 0)
    )
    action[at_once] = FREED_AT_ONCE
    kept = np.ones(len(action), bool)
    kept[1:][at_once[:-1]] = False
    freeing = kept & np.isin(action, (Action.FREE_REQUESTED, Action.FREE_COMPLETED, FREED_AT_ONCE))
    newest = np.searchsorted(made.made[there], np.flatnonzero(freeing) + window.first) - 1
    block = owner[freeing]
    other = kept & ~freeing & (action != Action.ALLOC)
    times = np.maximum.accumulate(events.time_us[stretch])[kept]
    return {
        "action": action[kept],
        "freed": np.where(block >= 0, newest - block, -1),
        "time": np.diff(times, prepend=times[:1]),
        "otherAddress": events.address[stretch][other].astype(np.int64),
        "otherSize": events.size[stretch][other],
        "otherStack": events.stack[stretch][other],
        "otherStream": events.stream[stretch][other].astype(np.int64),
    }


def _owners(made: Allocations, there: Column, window: Window) -> Column:
    """For each event of the window which block of `there` it gives back; -1 for others, and for blocks nobody knows."""
    owner = np.full(window.end - window.first, -1, np.int64)
    for ends in (made.completed[there], made.freed[there]):
        inside = np.flatnonzero((ends >= window.first) & (ends < window.end))
        owner[ends[inside] - window.first] = inside
    return owner


def _pieces(case: Case, window: Window) -> dict[str, Column]:
    found = [
        piece for piece in pieces(case.trace) if piece.taken < window.end and piece.returned >= window.first
    ]
    return {
        "pieceAddress": np.array([piece.address for piece in found], np.int64),
        "pieceSize": np.array([piece.size_bytes for piece in found], np.int64),
        "pieceTaken": np.array([piece.taken for piece in found], np.int64),
        "pieceReturned": np.array([piece.returned for piece in found], np.int64),
        "pieceStream": np.array([piece.stream for piece in found], np.int64),
        "piecePool": np.array([piece.pool for piece in found], np.int64),
        "pieceFlags": np.array([piece.is_large + 2 * piece.is_expandable for piece in found], np.int64),
    }
