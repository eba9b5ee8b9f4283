"""The facts of an out-of-memory error as hotbed.trace.verdict judges them, from torch's memory map at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotbed.trace.verdict import Situation

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEFAULT_POOL = (0, 0)


def situation(row: dict[str, Any], segments: Iterable[dict[str, Any]], stream: int) -> Situation:
    """`row`: fields of hotbed.trace.recorded.Failure and "device"; `segments` of torch.cuda.memory_snapshot();
    `stream` the one that asked."""
    pending = private_free = private = other_stream = hole = 0
    for segment in segments:
        if segment["device"] != row["device"]:
            continue
        is_private = tuple(segment.get("segment_pool_id", _DEFAULT_POOL)) != _DEFAULT_POOL
        pending += segment["active_size"] - segment["allocated_size"]
        private += segment["allocated_size"] if is_private else 0
        free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
        if is_private:
            private_free += sum(free)
        elif segment["stream"] != stream:
            other_stream += sum(free)
        else:
            hole = max([hole, *free])
    return Situation(
        **{name: row[name] for name in _FIGURES},
        pending_bytes=pending,
        private_free_bytes=private_free,
        stream_free_bytes=other_stream,
        largest_hole_bytes=hole,
        private_bytes=private,
    )


_FIGURES = (
    "requested_bytes",
    "allocated_bytes",
    "reserved_bytes",
    "free_bytes",
    "total_bytes",
    "process_bytes",
    "others_bytes",
    "limit_bytes",
)
