"""`hotbed.summary`: the memory of this process in words."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hotbed.errors import UsageError
from hotbed.recording.device_memory import memory_seen
from hotbed.recording.memory_map import mapped_segments
from hotbed.trace.condition import Condition, Summary, summarize

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEFAULT_POOL = (0, 0)


def summary(device: int | None = None) -> Summary:
    """The memory of this process on `device` (default: torch's current one) now: print it, or let a notebook show it.

    Takes milliseconds. Raises UsageError where torch has not been imported, CUDA is not in use, or there is no such
    device.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        raise UsageError(
            "this process does not use CUDA (yet): there is nothing to sum up", hint="hotbed summary FILE"
        )
    number = torch.cuda.current_device() if device is None else device
    if not 0 <= number < torch.cuda.device_count():
        raise UsageError(
            f"there is no device {number}", hint=f"devices: 0 to {torch.cuda.device_count() - 1}"
        )
    return summarize(_condition(torch, number))


def _condition(torch: Any, device: int) -> Condition:
    stats = torch.cuda.memory_stats(device)
    properties = torch.cuda.get_device_properties(device)
    free, total = torch.cuda.mem_get_info(device)
    seen = memory_seen(torch, device)
    segments = [row for row in mapped_segments(torch) if row["device"] == device]
    return Condition(
        device=device,
        name=properties.name,
        allocated_bytes=stats.get("allocated_bytes.all.current", 0),
        reserved_bytes=stats.get("reserved_bytes.all.current", 0),
        peak_allocated_bytes=stats.get("allocated_bytes.all.peak"),
        peak_reserved_bytes=stats.get("reserved_bytes.all.peak"),
        free_bytes=free,
        total_bytes=total,
        process_bytes=seen.process_bytes,
        others_bytes=seen.others_bytes,
        limit_bytes=_limit(torch, device, total),
        retries=stats.get("num_alloc_retries"),
        ooms=stats.get("num_ooms"),
        expandable=any(row.get("is_expandable") for row in segments),
        **_parts(segments),
    )


def _limit(torch: Any, device: int, total: int) -> int | None:
    ask = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    fraction = 1.0 if ask is None else ask(device)
    return int(fraction * total) if fraction < 1 else None


def _parts(segments: Iterable[dict[str, Any]]) -> dict[str, int]:
    """What is free in `segments`, by how it may be used."""
    parts = dict.fromkeys(("whole_bytes", "pieces_bytes", "private_bytes", "pending_bytes"), 0)
    for row in segments:
        parts["pending_bytes"] += row["active_size"] - row["allocated_size"]
        free = row["total_size"] - row["active_size"]
        if tuple(row.get("segment_pool_id", _DEFAULT_POOL)) != _DEFAULT_POOL:
            parts["private_bytes"] += free
        elif row["active_size"]:
            parts["pieces_bytes"] += free
        else:
            parts["whole_bytes"] += free
    return parts
