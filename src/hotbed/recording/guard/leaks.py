"""Alerts while the program runs: memory that is live at the ends of steps grows, and which lines it comes from."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from hotbed.recording.guard.levels import levels
from hotbed.recording.guard.slope import growth
from hotbed.recording.guard.words import line_words, say
from hotbed.recording.reach import in_library
from hotbed.recording.snapshot import snapshot as take_snapshot
from hotbed.trace.model import Frame
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_SHARE: Final = 0.002
"""of the time, for reading the counters"""
_KEPT: Final = 64
_MAP_AT: Final = (8, 32)
"""levels after which the memory map is kept, to be compared when growth is found"""
_LINES: Final = 3


class Leaks:
    """Looks at the end of each step, or of as many as cost little; says once for each device what grows.

    `found`: what was said.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._levels: dict[int, list[tuple[int, int]]] = {}
        """device → (step, bytes allocated)"""
        self._maps: dict[int, Counter[Frame | None]] = {}
        self._looks = 0
        self._spent, self._since = 0.0, time.perf_counter()
        self.found: list[str] = []
        self._alerted: set[int] = set()

    def stepped(self, count: int) -> None:
        """A step is over."""
        begun = time.perf_counter()
        if self._spent > _MOST_SHARE * (begun - self._since) and self._looks > _KEPT:
            return
        self._looks += 1
        for device, level in levels(self._torch).items():
            if device not in self._alerted:
                self._look(device, count, level.allocated_bytes)
        self._spent += time.perf_counter() - begun

    def _look(self, device: int, step: int, allocated: int) -> None:
        kept = self._levels.setdefault(device, [])
        kept.append((step, allocated))
        if len(kept) > _KEPT:
            # Every other one goes: what stays spans the whole run.
            del kept[::2]
        if self._looks in _MAP_AT:
            self._maps[device] = self._by_line(device)
        found = growth(kept) if self._looks >= 16 and self._looks % 16 == 0 else None
        if found is not None:
            self._alert(device, step, found)

    def _alert(self, device: int, step: int, per_step: float) -> None:
        self._alerted.add(device)
        grown = self._by_line(device)
        grown.subtract(self._maps.get(device, Counter()))
        lines = [(line, size) for line, size in grown.most_common(_LINES) if size > 0 and line is not None]
        text = f"memory in use at the ends of steps grows by {format_size(int(per_step))} a step on device {device} (step {step})"
        text += "".join(f"\n  {format_size(size)} more from {line_words(line)}" for line, size in lines)
        text += "\n  `hotbed record` on this program and `hotbed findings` on the file say what holds it"
        self.found.append(text)
        say(text)

    def _by_line(self, device: int) -> Counter[Frame | None]:
        """Bytes that are live, by the program's line that asked for them, where torch keeps stacks."""
        sizes: Counter[Frame | None] = Counter()
        for segment in take_snapshot(self._torch)["segments"]:
            if segment["device"] != device:
                continue
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    sizes[_own_line(block.get("frames", ()))] += block["size"]
        return sizes


def _own_line(frames: Iterable[dict[str, Any]]) -> Frame | None:
    for frame in frames:
        if not in_library(frame["filename"]):
            return Frame(frame["filename"], frame["line"], frame["name"])
    return None
