"""Watches Python's garbage collector: which collections gave memory of the GPU back, and so ended reference cycles."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

from hotbed.recording.reach import line_of_the_program

if TYPE_CHECKING:
    from collections.abc import Callable

    Counters = list[list[int] | None]

_MOST_SHARE = 0.005
"""of the time, for collections of the youngest generation"""
_MOST_ROWS = 2000
_ALLOCATED, _RESERVED = 2, 3
"""indices in the fields of hotbed.trace.marking.counts.Counters"""


class GcWatch:
    """Calls `told` with a row for each collection after which less is allocated on a device than before.

    `counters` gives, by device, what torch's allocator counts (fields of Counters). A row has the fields of CacheCall that
    are known here, those in bytes by device, and "positions", the counters before. Collections of the youngest generation come every few
    hundred objects: of them so many are watched as cost little, and no more than so many rows are told.
    """

    def __init__(self, counters: Callable[[], Counters], told: Callable[[dict[str, Any]], None]) -> None:
        self._counters, self._told = counters, told
        self._before: Counters | None = None
        self._begun = 0.0
        self._kind = "gc"
        self._rows = 0
        self._since, self._spent = time.perf_counter(), 0.0
        self.trouble: str | None = None
        """why it watches no longer"""
        gc.callbacks.append(self._called)

    def stop(self) -> None:
        """Watches no longer; a second call does nothing."""
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)

    def _called(self, phase: str, info: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            if info["generation"] or self._spent <= _MOST_SHARE * (now - self._since):
                self._guarded(self._begin)
                self._spent += time.perf_counter() - now
        elif self._before:
            self._guarded(self._end)
            self._spent += time.perf_counter() - now

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the collector would print it into the program's output
            self.trouble = f"collections are not watched: {type(error).__name__}: {error}"
            self.stop()

    def _begin(self) -> None:
        self._kind = "gc" if _automatic() else "gc.collect"
        self._before = self._counters()
        self._begun = time.perf_counter()

    def _end(self) -> None:
        before, self._before = self._before, None
        seconds = time.perf_counter() - self._begun
        devices = {
            str(device): _bytes(then, now)
            for device, (then, now) in enumerate(zip(before or [], self._counters(), strict=False))
            if then and now
        }
        less = any(row["allocated_after"] < row["allocated_before"] for row in devices.values())
        if less and self._rows < _MOST_ROWS:
            self._rows += 1
            self._told(
                {
                    "kind": self._kind,
                    "where": line_of_the_program() if self._kind == "gc.collect" else None,
                    "seconds": seconds,
                    "positions": before,
                    "devices": devices,
                }
            )


def _bytes(before: list[int], after: list[int]) -> dict[str, int]:
    return {
        "allocated_before": before[_ALLOCATED],
        "allocated_after": after[_ALLOCATED],
        "reserved_before": before[_RESERVED],
        "reserved_after": after[_RESERVED],
    }


def _automatic() -> bool:
    """Whether the collection that begins is Python's own: one that was asked for rarely comes when one is due."""
    due = gc.get_threshold()[0]
    return gc.isenabled() and 0 < due < gc.get_count()[0]
