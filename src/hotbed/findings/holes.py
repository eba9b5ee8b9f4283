"""Free memory inside what is reserved: why a request could not use it, and which live blocks keep it from going back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings.layout import layout_at
from hotbed.replaying.detail import PeakRequest, why_unusable
from hotbed.trace.model import DEFAULT_POOL, NONE, Action

if TYPE_CHECKING:
    from hotbed.findings.case import Case
    from hotbed.findings.layout import Layout
    from hotbed.trace import Frame
    from hotbed.trace.model import PoolId

_GROWTHS: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_SMALL_SEGMENT: Final = 2 << 20
"""what the small pool takes from the driver at a time. Source: kSmallBuffer, allocator-semantics 1.2"""


@dataclass(frozen=True)
class Kind:
    """Free bytes that one request could not use for one reason (replaying.detail names them)."""

    reason: str
    bytes: int
    pieces: int
    largest_bytes: int


@dataclass(frozen=True)
class Pin:
    """The live blocks of one line that keep segments from being returned or used in one piece.

    Of the blocks in a segment the one that lives longest is to blame, and those of its line: without them the segment
    would become free.
    """

    where: Frame | None
    blocks: int
    block_bytes: int
    free_bytes: int
    """in the segments that these blocks pin"""
    largest_hole_bytes: int


@dataclass(frozen=True)
class Standing:
    """The memory map when a request could not be served from what was reserved."""

    place: int
    request: int
    """the event that asked"""
    request_bytes: int
    stream: int
    pool: PoolId
    layout: Layout
    kinds: tuple[Kind, ...]

    @property
    def free_bytes(self) -> int:
        """Reserved, but in no block."""
        return sum(kind.bytes for kind in self.kinds)

    def bytes_of(self, reason: str) -> int:
        """Free bytes that were of no use for `reason`."""
        return sum(kind.bytes for kind in self.kinds if kind.reason == reason)


def before_growth(case: Case) -> Standing | None:
    """How things stood right before reserved memory last grew on its way to its peak; None where it never did.

    Growth of the small pool, 2 MiB at a time, says little: it counts only where nothing else grew.
    """
    events = case.trace.events
    grown = np.isin(events.action[: case.reserved_peak], _GROWTHS) & case.is_real[: case.reserved_peak]
    growths = np.flatnonzero(grown & (events.size[: case.reserved_peak] > _SMALL_SEGMENT))
    growths = growths if len(growths) else np.flatnonzero(grown)
    if not len(growths):
        return None
    growth = int(growths[-1])
    asked = np.flatnonzero(np.isin(events.action[growth:], (Action.ALLOC, Action.OOM)))
    if not len(asked):
        return None
    first = growth
    while first > 0 and events.action[first - 1] == Action.SEGMENT_MAP == events.action[first]:
        first -= 1
    return standing(case, first, growth + int(asked[0]))


def standing(case: Case, place: int, request: int) -> Standing:
    """The map at `place` as event number `request`, an allocation or OOM, met it."""
    events = case.trace.events
    pool = int(events.pool[request])
    wanted = PeakRequest(
        op=NONE,
        size_bytes=int(events.size[request]),
        stream=int(events.stream[request]),
        pool=DEFAULT_POOL if pool == NONE else case.trace.pools[pool],
        address=NONE,
    )
    layout = layout_at(case, place)
    free: dict[str, list[int]] = {}
    columns = (layout.hole_bytes, layout.hole_segment, layout.hole_is_whole)
    for size, segment, whole in zip(*(column.tolist() for column in columns), strict=True):
        reason = why_unusable(layout.segments[segment], whole, size, wanted)
        free.setdefault(reason, []).append(size)
    kinds = [Kind(reason, sum(sizes), len(sizes), max(sizes)) for reason, sizes in free.items()]
    kinds.sort(key=lambda kind: -kind.bytes)
    return Standing(place, request, wanted.size_bytes, wanted.stream, wanted.pool, layout, tuple(kinds))


def pins(case: Case, stands: Standing) -> list[Pin]:
    """Who pins the free memory of partly used segments, line by line, most pinned bytes first."""
    layout, made = stands.layout, case.allocations
    holes = layout.hole_segment[~layout.hole_is_whole]
    sizes = layout.hole_bytes[~layout.hole_is_whole]
    count = len(layout.segments)
    free = np.bincount(holes, weights=sizes, minlength=count).astype(np.int64)
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, holes, sizes)
    # The last block of each segment in this order is the one that outlives the others, the older one of equals.
    order = np.lexsort((-made.made[layout.block], made.completed[layout.block], layout.block_segment))
    ends = np.searchsorted(layout.block_segment[order], np.arange(count), "right") - 1
    lines = case.allocation_lines[layout.block]
    blamed = np.full(count, NONE)
    filled = np.flatnonzero(np.bincount(layout.block_segment, minlength=count))
    blamed[filled] = lines[order[ends[filled]]]
    same = lines == blamed[layout.block_segment]
    blocks = np.bincount(layout.block_segment[same], minlength=count)
    held = np.bincount(layout.block_segment[same], weights=made.size[layout.block[same]], minlength=count)
    found = [
        Pin(
            where=case.lines[line],
            blocks=int(blocks[mine].sum()),
            block_bytes=int(held[mine].sum()),
            free_bytes=int(free[mine].sum()),
            largest_hole_bytes=int(largest[mine].max()),
        )
        for line in np.unique(blamed[free > 0]).tolist()
        for mine in (np.flatnonzero((blamed == line) & (free > 0)),)
    ]
    return sorted(found, key=lambda pin: -pin.free_bytes)
