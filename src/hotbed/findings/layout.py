"""The memory map at a place as columns: which block lies in which segment, and the holes between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.memory_map import segments_at
from hotbed.units import MIB

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.trace import Segment

    Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layout:
    """Segments by address (without their blocks), m blocks and k holes, each with the number of its segment."""

    segments: tuple[Segment, ...]
    block: Index
    """[m] number of the allocation, by address"""
    block_segment: Index
    hole_bytes: Index
    hole_segment: Index
    hole_is_whole: npt.NDArray[np.bool_]
    """[k] whether the hole is all of its segment"""


def layout_at(case: Case, place: int) -> Layout:
    """The layout at `place`. Blocks that lie in no known segment are left out.

    Source of the rule for rests: in a segment of the large pool (not expandable) every free block is larger than 1 MiB, so
    a smaller gap belongs to the block before it.
    """
    made = case.allocations
    segments = tuple(segments_at(case.trace, place))
    bases = np.array([segment.address for segment in segments], np.uint64)
    ends = np.array([segment.end for segment in segments], np.uint64)
    unsplit = np.array([segment.is_large and not segment.is_expandable for segment in segments], bool)
    block = np.flatnonzero(made.active_at(place))
    block = block[np.argsort(made.address[block], kind="stable")]
    owner = np.searchsorted(bases, made.address[block], "right") - 1
    inside = (owner >= 0) & (made.address[block] < ends[owner.clip(0)]) if len(segments) else owner >= 0
    block, owner = block[inside], owner[inside]
    after, following = _gaps(made.address[block], made.size[block], owner, ends)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    before = (made.address[block][first] - bases[owner[first]]).astype(np.int64)
    kept = after > np.where(unsplit[following], MIB, 0)
    empty = np.setdiff1d(np.arange(len(segments)), owner)
    sizes = np.array([segments[number].size_bytes for number in empty.tolist()], np.int64)
    return Layout(
        segments=segments,
        block=block,
        block_segment=owner,
        hole_bytes=np.concatenate([before[before > 0], after[kept], sizes]),
        hole_segment=np.concatenate([owner[first][before > 0], following[kept], empty]),
        hole_is_whole=np.repeat([False, True], [int((before > 0).sum() + kept.sum()), len(empty)]),
    )


def _gaps(
    address: npt.NDArray[np.uint64], size: Index, owner: Index, ends: npt.NDArray[np.uint64]
) -> tuple[Index, Index]:
    """Bytes between each block and the next of its segment, or the segment's end; and the segment."""
    limit = ends[owner]
    same = owner[1:] == owner[:-1]
    limit[:-1][same] = address[1:][same]
    return (limit.astype(np.int64) - address.astype(np.int64) - size), owner
