"""Segments that existed before a recording, as the requests that make them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hotbed.trace.model import Block, Segment

# The largest request that the small pool serves; a larger one goes to the large pool. Source: kSmallSize,
# allocator-semantics 1.2.
_SMALL_BYTES = 1 << 20
# The driver hands out address ranges of this size from high to low, and what is in one from low to high. Source:
# phantom-replay, 1.2.
_SLOT_BITS = 25


def oldest_first(segments: Iterable[Segment]) -> list[Segment]:
    """`segments` in the order in which the driver probably made them, which from torch 2.13 on decides ties."""
    return sorted(segments, key=lambda segment: (-(segment.address >> _SLOT_BITS), segment.address))


def is_made_whole(segment: Segment) -> bool:
    """Whether one request for the whole of `segment` must come first: its blocks alone could ask for another size."""
    return segment.is_large and not segment.is_expandable


def pieces_of(segment: Segment) -> Iterator[tuple[int, Block | None]]:
    """(bytes, block) of each request that fills `segment`, in order of address; None stands for free memory.

    A live block asks for all of its bytes, rounding included, so that the next one comes to lie behind it.

    Free memory beyond the largest request of its pool takes several. Free memory that is too small for a request
    of its pool (pages of expandable segments are split that finely) is left out: it comes to lie behind the blocks
    that follow it.
    """
    for block in segment.blocks:
        if block.state != "inactive":
            yield block.size_bytes, block
        elif segment.is_large:
            if block.size_bytes > _SMALL_BYTES:
                yield block.size_bytes, None
        else:
            for at in range(0, block.size_bytes, _SMALL_BYTES):
                yield min(_SMALL_BYTES, block.size_bytes - at), None
