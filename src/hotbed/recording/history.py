"""torch's allocator history: turned on before the first allocation, kept on, and where in it the program is now."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any

from hotbed.recording.native_calls import at_once, calls_of

if TYPE_CHECKING:
    from collections.abc import Callable

Position = tuple[int, int]
"""(allocations, frees) of one device so far: a place between two events of its history"""

_PEAKS = ("allocated_bytes", "reserved_bytes")


class History:
    """The history of every device of this process. `missing`: this torch or backend keeps none."""

    def __init__(self, torch: Any, *, stacks: bool, entries: int = sys.maxsize) -> None:
        self._torch, self._stacks = torch, stacks
        self.entries = entries
        """most entries that torch keeps of each device; the oldest go first"""
        self._before: dict[int, Position] = {}
        """counts that the program's own resets have taken from the counters"""
        self._peaks: dict[int, dict[str, int]] = {}
        """highest peaks before such resets"""
        self._wrap_resets()
        self._record = torch.cuda.memory._record_memory_history
        # Another recorder of hotbed's keeps the history of this process, e.g. fit.
        self.missing = self._record.__name__ == _kept_on.__name__
        # One that only the thread gets that turned it on would be missed, with a warning, by another that turns it off.
        known = "global_record_annotations" in inspect.signature(self._record).parameters
        self._annotations = {"global_record_annotations": True} if known else {}
        self.keep_on()

    def keep_on(self) -> None:
        """From now on a program that records by itself does not stop this recording, nor bound it."""
        self._clearing: list[functools.partial[Any]] = []
        self._torch.cuda.memory._record_memory_history = _kept_on

    def start(self) -> None:
        """Call it right before CUDA is initialised: this initialises it."""
        if self.missing:
            return
        try:
            self._turn_on()
        except RuntimeError:
            # The cudaMallocAsync backend has no history.
            self.missing = True
            self._torch.cuda.memory._record_memory_history = self._record

    def stop(self) -> None:
        """Turns it off; the program may record by itself again."""
        self._torch.cuda.memory._record_memory_history = self._record
        if not self.missing:
            self._record(None)

    def clear(self) -> None:
        """Drops all entries. Blocks that are live keep their stacks."""
        at_once(self.clearing())

    def clearing(self) -> list[functools.partial[Any]]:
        """The calls into torch that clear() makes."""
        if not self._clearing:
            self._clearing = self._calls_that_clear()
        return self._clearing

    def _calls_that_clear(self) -> list[functools.partial[Any]]:
        name = "_cuda_record_memory_history"
        try:
            return calls_of(self._torch, name, lambda: self._turn_on(clear_history=True))
        except TypeError:
            # torch before 2.7: what turns it off drops them.
            off = calls_of(self._torch, name, lambda: self._record(None))
            return off + calls_of(self._torch, name, self._turn_on)

    def _turn_on(self, **more: bool) -> None:
        context = "alloc" if self._stacks else None
        self._record(
            "all", context=context, stacks="python", max_entries=self.entries, **self._annotations, **more
        )

    def devices(self) -> range:
        """Devices that the program may have used; none before CUDA is initialised."""
        cuda = self._torch.cuda
        return range(cuda.device_count() if cuda.is_initialized() else 0)

    def positions(self) -> list[Position]:
        """Where each device is now. Takes some 20 microseconds a device and allocates nothing on it."""
        return [self._position(device) for device in self.devices()]

    def _position(self, device: int) -> Position:
        return self._counted(device, self._stats(device))

    def _counted(self, device: int, stats: dict[str, Any]) -> Position:
        counts = stats.get("allocation", {}).get("all", {})
        before = self._before.get(device, (0, 0))
        return before[0] + counts.get("allocated", 0), before[1] + counts.get("freed", 0)

    def counters(self, device: int) -> list[int]:
        """Fields of hotbed.trace.marking.counts.Counters; they begin with the position."""
        return self.counters_in(device, self._stats(device))

    def counters_in(self, device: int, stats: dict[str, Any]) -> list[int]:
        """They in what torch._C._cuda_memoryStats(device) has returned."""
        peaks = self._peaks.get(device, {})
        current = {name: stats.get(name, {}).get("all", {}) for name in _PEAKS}
        return [
            *self._counted(device, stats),
            *(current[name].get("current", 0) for name in _PEAKS),
            *(max(current[name].get("peak", 0), peaks.get(name, 0)) for name in _PEAKS),
            stats.get("num_device_alloc", 0),
            stats.get("num_device_free", 0),
            stats.get("num_alloc_retries", 0),
        ]

    def peaks(self, device: int) -> dict[str, int]:
        """Most allocated_bytes and reserved_bytes of `device` since the process began."""
        stats, earlier = self._stats(device), self._peaks.get(device, {})
        return {
            name: max(stats.get(name, {}).get("all", {}).get("peak", 0), earlier.get(name, 0))
            for name in _PEAKS
        }

    def failures(self, device: int) -> tuple[int, int]:
        """(num_alloc_retries, num_ooms) of `device`."""
        stats = self._stats(device)
        return stats.get("num_alloc_retries", 0), stats.get("num_ooms", 0)

    def _stats(self, device: int) -> dict[str, Any]:
        stats: dict[str, Any] = self._torch._C._cuda_memoryStats(device)
        return stats

    def _wrap_resets(self) -> None:
        for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
            self._before_call(name, self._keep_peaks)
        for name in ("_cuda_resetAccumulatedMemoryStats", "_accelerator_resetAccumulatedStats"):
            self._before_call(name, self._keep_counts)

    def _before_call(self, name: str, keep: Callable[[int], None]) -> None:
        original = getattr(self._torch._C, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def reset(device: int, *rest: Any) -> Any:
            if device in self.devices():
                keep(device)
            return original(device, *rest)

        setattr(self._torch._C, name, reset)

    def _keep_peaks(self, device: int) -> None:
        self._peaks[device] = self.peaks(device)

    def _keep_counts(self, device: int) -> None:
        self._before[device] = self._position(device)


def _kept_on(*arguments: Any, **keywords: Any) -> None:
    """Stands for torch.cuda.memory._record_memory_history while hotbed records."""
