"""Whether what empty_cache() returned would have served what was taken from the driver after it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotbed.recording.memory_map import mapped_segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SMALL_SEGMENT = 2 << 20
"""Source: kSmallBuffer, allocator-semantics 1.2"""


@dataclass(frozen=True)
class Segment:
    """Memory from one cudaMalloc. Only requests of the same device, pool, stream and kind are served from it."""

    place: tuple[Any, ...]
    """(device, stream, pool, small, expandable)"""
    size_bytes: int


def segments(torch: Any) -> dict[tuple[Any, ...], Segment]:
    """All of this process. Expandable ones of one place count as one: they are ranges that grow, shrink and split.

    Takes milliseconds where there are thousands of blocks.
    """
    found: dict[tuple[Any, ...], Segment] = {}
    for row in mapped_segments(torch):
        expandable = bool(row.get("is_expandable", False))
        pool = tuple(row.get("segment_pool_id", (0, 0)))
        place = (row["device"], row["stream"], pool, row["segment_type"] == "small", expandable)
        key = place if expandable else (row["device"], row["address"])
        before = found[key].size_bytes if key in found else 0
        found[key] = Segment(place, before + row["total_size"])
    return found


def gone(before: Mapping[Any, Segment], after: Mapping[Any, Segment]) -> list[Segment]:
    """Segments, or the parts of those that grow and shrink, of `before` that `after` has no more."""
    found = []
    for key, segment in before.items():
        left = after[key].size_bytes if key in after else 0
        if left < segment.size_bytes:
            found.append(Segment(segment.place, segment.size_bytes - left))
    return found


def not_served(returned: Iterable[Segment], taken: Iterable[Segment]) -> int:
    """Bytes of `taken` that find no room in `returned`: what reserved memory would have grown by without the call.

    Largest first into the smallest that fits, as torch chooses; what is left of a large one serves others. Expandable
    memory is one range, small segments are alike.
    """
    free: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for segment in returned:
        free[segment.place].append(segment.size_bytes)
    for place, sizes in free.items():
        if place[-1]:
            free[place] = [sum(sizes)]
    missing = 0
    for segment in sorted(taken, key=lambda one: -one.size_bytes):
        missing += _take(free[segment.place], segment)
    return missing


def _take(free: list[int], segment: Segment) -> int:
    """Takes `segment` out of the sizes `free`; the bytes that did not fit."""
    if segment.place[-1] and free:
        missing = max(segment.size_bytes - free[0], 0)
        free[0] = max(free[0] - segment.size_bytes, 0)
        return missing
    fitting = [size for size in free if size >= segment.size_bytes]
    if not fitting:
        return segment.size_bytes
    chosen = min(fitting)
    free.remove(chosen)
    if chosen > segment.size_bytes and chosen > _SMALL_SEGMENT:
        free.append(chosen - segment.size_bytes)
    return 0
