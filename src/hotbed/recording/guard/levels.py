"""What the allocators of this process count, device by device: the figures that calls are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Level:
    """Bytes allocated and reserved now; cudaMalloc and allocations of the program since it began."""

    allocated_bytes: int
    reserved_bytes: int
    device_mallocs: int
    allocations: int


Levels = dict[int, Level]
"""by device; those that the process has never allocated on are left out"""
NONE = Level(0, 0, 0, 0)


def levels(torch: Any) -> Levels:
    """Takes some 20 microseconds a device, touches none of them."""
    if not torch.cuda.is_initialized():
        return {}
    read = ((device, _level(torch._C._cuda_memoryStats(device))) for device in range(_count(torch)))
    return {device: level for device, level in read if level.allocations}


def _count(torch: Any) -> int:
    count: int = torch.cuda.device_count()
    return count


def _level(stats: dict[str, Any]) -> Level:
    return Level(
        allocated_bytes=_of(stats, "allocated_bytes", "current"),
        reserved_bytes=_of(stats, "reserved_bytes", "current"),
        device_mallocs=stats.get("num_device_alloc", _of(stats, "segment", "allocated")),
        allocations=_of(stats, "allocation", "allocated"),
    )


def counters(torch: Any, device: int) -> list[int] | None:
    """Fields of hotbed.trace.marking.counts.Counters; None for a device that was never allocated on."""
    stats = torch._C._cuda_memoryStats(device)
    made = _of(stats, "allocation", "allocated")
    if not made:
        return None
    figures = ("allocated_bytes", "reserved_bytes")
    return [
        made,
        _of(stats, "allocation", "freed"),
        *(_of(stats, name, which) for which in ("current", "peak") for name in figures),
        *(stats.get(name, 0) for name in ("num_device_alloc", "num_device_free", "num_alloc_retries")),
    ]


def _of(stats: dict[str, Any], name: str, which: str) -> int:
    value: int = stats.get(name, {}).get("all", {}).get(which, 0)
    return value


def less(before: Levels, after: Levels, figure: str) -> int:
    """By how much `figure` fell, over the devices on which it did."""
    return sum(
        max(getattr(level, figure) - getattr(after.get(device, NONE), figure), 0)
        for device, level in before.items()
    )


@dataclass(frozen=True)
class Room:
    """Bytes free on a device, and what this process could have of it in all: the device, or its own cap."""

    free_bytes: int
    limit_bytes: int


def room(torch: Any, device: int) -> Room:
    """Asks the driver. A cap (set_per_process_memory_fraction) leaves less."""
    free, total = torch.cuda.mem_get_info(device)
    fraction = _fraction(torch, device)
    if fraction >= 1:
        return Room(free, total)
    cap = int(fraction * total)
    reserved = torch.cuda.memory_reserved(device)
    return Room(max(min(free, cap - reserved), 0), cap)


def _fraction(torch: Any, device: int) -> float:
    ask = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    try:
        return float(ask(device)) if ask is not None else 1.0
    except RuntimeError:
        # The cudaMallocAsync backend of older torch has none.
        return 1.0
