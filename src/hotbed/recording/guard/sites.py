"""What is known of each line that empties the cache or collects garbage, and what memory did between its calls."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from hotbed.recording.guard.levels import NONE, Levels, less

if TYPE_CHECKING:
    from hotbed.recording.guard.cache_calls import Call, Kind
    from hotbed.recording.guard.calling import Caller

_RECENT: Final = 16
_MALLOC_S: Final = 36e-6
_MALLOC_S_PER_BYTE: Final = 0.078e-6 / (1 << 20)
"""What one cudaMalloc takes on an H200 (src/hotbed/gpu/calibrations/h200.toml): the program's own are not timed."""


@dataclass
class Interval:
    """From one call to the next one that empties the cache; bytes over all devices. `again`: as much of what was returned as was
    taken from the driver once more, in so many `mallocs`. `gap`: seconds since the site's call before."""

    seconds: float
    gap: float | None
    returned: int
    near_limit: bool
    again: int = 0
    mallocs: int = 0
    rested: bool = False
    """nothing was allocated for a long while after the call"""

    @property
    def cost(self) -> float:
        """Seconds of the call as measured, and of the cudaMalloc after it as an H200 takes."""
        return self.seconds + self.mallocs * _MALLOC_S + self.again * _MALLOC_S_PER_BYTE


@dataclass
class Site:
    """One line, with the library's line that called for it. Bytes over all devices and calls."""

    kind: Kind
    caller: Caller
    calls: int = 0
    skipped: int = 0
    steps: int = 0
    first_at: float = 0.0
    last_at: float = 0.0
    seconds: float = 0.0
    again_seconds: float = 0.0
    returned_bytes: int = 0
    again_bytes: int = 0
    freed_bytes: int = 0
    device_mallocs: int = 0
    recent: deque[Interval] = field(default_factory=lambda: deque(maxlen=_RECENT))
    missing: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=4))
    """of the last intervals that were looked into: (bytes that what was returned could not have served, reserved bytes)"""
    skipped_in_a_row: int = 0
    warned: bool = False

    @property
    def median_gap(self) -> float | None:
        """Seconds between calls."""
        gaps = [interval.gap for interval in self.recent if interval.gap is not None]
        return median(gaps) if gaps else None

    @property
    def share(self) -> float:
        """Part of the time that the last calls took, with what followed of them."""
        spans = [interval for interval in self.recent if interval.gap is not None]
        time = sum(interval.gap or 0.0 for interval in spans)
        return sum(interval.cost for interval in spans) / time if time else 0.0

    @property
    def parks(self) -> bool:
        """Whether the program often rests after the call."""
        return 4 * sum(interval.rested for interval in self.recent) >= max(len(self.recent), 1)

    @property
    def stayed_low(self) -> bool:
        """Whether most of what the last calls returned was not taken again."""
        returned = sum(interval.returned for interval in self.recent)
        return sum(interval.again for interval in self.recent) < returned / 2


class Sites:
    """All of them. `add` a call when it is over; `steps` is how many the program has completed."""

    def __init__(self) -> None:
        self.by_key: dict[Any, Site] = {}
        self._open: tuple[Site, Interval, Levels] | None = None
        """the interval that goes on now, and the levels right after its call"""

    def find(self, kind: Kind, by: Caller) -> Site:
        """The site of calls from there, new or known."""
        return self.by_key.setdefault((kind, by), Site(kind, by))

    def add(self, call: Call, steps: int, near_limit: bool) -> Site:
        """Counts `call`; one that emptied the cache ends the interval before it."""
        site = self.find(call.kind, call.caller)
        gap = call.begun - site.last_at if site.calls else None
        site.first_at = site.first_at or call.begun
        site.last_at = call.begun
        site.calls += 1
        site.steps = steps
        if call.kind == "empty_cache":
            self._close(call.before)
        if call.skipped:
            site.skipped += 1
            site.skipped_in_a_row += 1
            return site
        site.skipped_in_a_row = 0
        returned = less(call.before, call.after, "reserved_bytes")
        interval = Interval(call.seconds, gap, returned, near_limit)
        site.recent.append(interval)
        site.seconds += call.seconds
        site.returned_bytes += returned
        site.freed_bytes += less(call.before, call.after, "allocated_bytes")
        if call.kind == "empty_cache":
            self._open = site, interval, call.after
        return site

    def rested(self) -> None:
        """Nothing has been allocated for a long while since the last call."""
        if self._open is not None:
            self._open[1].rested = True

    def _close(self, now: Levels) -> None:
        if self._open is None:
            return
        site, interval, after = self._open
        self._open = None
        grown = less(now, after, "reserved_bytes")
        interval.again = min(interval.returned, grown)
        if interval.again:
            interval.mallocs = sum(
                max(level.device_mallocs - after.get(device, NONE).device_mallocs, 0)
                for device, level in now.items()
            )
        site.again_bytes += interval.again
        site.device_mallocs += interval.mallocs
        site.again_seconds += interval.cost - interval.seconds
