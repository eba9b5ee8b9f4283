"""Segments of a decoded snapshot as Segment values, with what older torch versions left out worked out."""

from __future__ import annotations

from typing import Any

from hotbed.errors import TraceError
from hotbed.trace.entries import number, pool_of
from hotbed.trace.model import DEFAULT_POOL, NONE, Block, Segment

_MASK = (1 << 64) - 1


def segments_of(raw: list[dict[str, Any]], device: int) -> tuple[Segment, ...]:
    """The segments of `device`, by address. Raises TraceError for segments without address or size."""
    found = [_segment(segment) for segment in raw if number(segment, "device", "a segment") == device]
    return tuple(sorted(found, key=lambda segment: segment.address))


def devices_of(raw: list[dict[str, Any]]) -> dict[int, int]:
    """Device → bytes in segments, for every device that has segments."""
    sizes: dict[int, int] = {}
    for segment in raw:
        device = number(segment, "device", "a segment")
        sizes[device] = sizes.get(device, 0) + number(segment, "total_size", "a segment")
    return sizes


def _segment(raw: dict[str, Any]) -> Segment:
    if "address" not in raw or "total_size" not in raw:
        raise TraceError("a segment has no address or no total_size: the snapshot is damaged")
    address = number(raw, "address", "a segment") & _MASK
    size_bytes = number(raw, "total_size", "a segment")
    return Segment(
        address=address,
        size_bytes=size_bytes,
        stream=number(raw, "stream", "a segment") & _MASK,
        is_large=raw.get("segment_type", "large" if size_bytes > 2 << 20 else "small") == "large",
        is_expandable=raw.get("is_expandable") is True,
        pool=pool_of(raw.get("segment_pool_id")) or DEFAULT_POOL,
        blocks=_blocks(raw.get("blocks", []), address),
    )


def _blocks(raw: Any, address: int) -> tuple[Block, ...]:
    if type(raw) is not list or any(type(block) is not dict for block in raw):
        raise TraceError("the blocks of a segment are not a list of dictionaries: the snapshot is damaged")
    blocks = []
    for block in raw:
        # torch before 2.3 gave no address: blocks follow each other without gaps.
        address = number(block, "address", "a block") & _MASK or address
        size_bytes = number(block, "size", "a block")
        state = block.get("state")
        stack = block.get("frames")
        blocks.append(
            Block(
                address=address,
                size_bytes=size_bytes,
                requested_bytes=number(block, "requested_size", "a block"),
                state=state if type(state) is str else "inactive",
                stack=stack if type(stack) is int else NONE,
            )
        )
        address += size_bytes
    return tuple(blocks)
