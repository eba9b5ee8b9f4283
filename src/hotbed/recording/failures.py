"""Out-of-memory errors as torch is about to raise them, and what was true then."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hotbed.recording.device_memory import memory_seen
from hotbed.recording.reach import line_of_the_program

if TYPE_CHECKING:
    from collections.abc import Callable

_current: list[Failures] = []
_attached: list[bool] = []


class Failures:
    """Calls `told` with a row (fields of hotbed.trace.recorded.Failure, and `device`), how many there were, and the
    seconds since the one before, until close(): torch itself keeps an observer for ever."""

    def __init__(self, torch: Any, told: Callable[[dict[str, Any], int, float], None]) -> None:
        self._torch, self._told = torch, told
        self.count = 0
        self._last = time.monotonic()
        _current.append(self)
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None and not _attached:
            _attached.append(True)
            # The cudaMallocAsync backend has no observers.
            with suppress(RuntimeError):
                attach(_observe)

    def close(self) -> None:
        """Calls no more; a second call does nothing."""
        if self in _current:
            _current.remove(self)

    def observe(self, device: int, requested: int, limit: int, free: int) -> None:
        """`limit`: the device's memory, or the cap that the program has set; bytes."""
        self.count += 1
        now = time.monotonic()
        since, self._last = now - self._last, now
        stats = self._torch._C._cuda_memoryStats(device)
        total = self._torch.cuda.get_device_properties(device).total_memory
        seen = memory_seen(self._torch, device)
        row = {
            "device": device,
            "where": line_of_the_program(),
            "message": "",
            "requested_bytes": requested,
            "allocated_bytes": stats["allocated_bytes"]["all"]["current"],
            "reserved_bytes": stats["reserved_bytes"]["all"]["current"],
            "free_bytes": free,
            "total_bytes": total,
            "process_bytes": seen.process_bytes,
            "others_bytes": seen.others_bytes,
            "limit_bytes": limit if limit != total else None,
        }
        self._told(row, self.count, since)


def _observe(device: int, requested: int, limit: int, free: int) -> None:
    for failures in list(_current):
        failures.observe(device, requested, limit, free)
