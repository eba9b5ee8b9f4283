"""Segments that existed before a recording, as the requests that make them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.trace.model import Block, Segment

# The largest request that the small pool serves; a larger one goes to the large pool. Source: kSmallSize,
# allocator-semantics 1.2.
_SMALL_BYTES = 1 << 20


def is_made_whole(segment: Segment) -> bool:
    """Whether one request for the whole of `segment` must come first: its blocks alone could ask for another size."""
    return segment.is_large and not segment.is_expandable


def pieces_of(segment: Segment) -> Iterator[tuple[int, Block | None]]:
    """(bytes, block) of each request that fills `segment`, in order of address; None stands for free memory.

    Free memory beyond the largest request of its pool takes several. Free memory that is too small for a request
    of its pool (pages of expandable segments are split that finely) is left out: it comes to lie behind the blocks
    that follow it.
    """
    for block in segment.blocks:
        if block.state != "inactive":
            yield block.requested_bytes or block.size_bytes, block
        elif segment.is_large:
            if block.size_bytes > _SMALL_BYTES:
                yield block.size_bytes, None
        else:
            for at in range(0, block.size_bytes, _SMALL_BYTES):
                yield min(_SMALL_BYTES, block.size_bytes - at), None
