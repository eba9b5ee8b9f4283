"""Alerts while the program runs: memory that is live at the ends of steps grows, and the lines it comes from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from hotbed.recording.guard.levels import levels
from hotbed.recording.guard.ring import Ring
from hotbed.recording.guard.words import line_words, say
from hotbed.recording.leak_watch import Alert, Held, LeakWatch, Stack, live_by_stack
from hotbed.recording.reach import in_library
from hotbed.trace.model import Frame
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_SHARE: Final = 0.002
"""of the time, for reading the counters"""
_FIRST: Final = 64
"""So many steps are all looked at."""
_LINES: Final = 3
_STACKS: Final = 512
"""Looks for which stacks are kept once growth is suspected; they slow the allocator down."""


class Leaks:
    """Looks at the end of each step, or of as many as cost little; says once for each device what grows.

    `found`: what was said.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._watches: dict[int, LeakWatch] = {}
        self._looks = 0
        self._ring = Ring(torch)
        self._stacks_end = 0
        self._spent, self._since = 0.0, time.perf_counter()
        self.found: list[str] = []

    def stepped(self) -> None:
        """A step is over."""
        begun = time.perf_counter()
        if self._looks > _FIRST and self._spent > _MOST_SHARE * (begun - self._since):
            return
        self._looks += 1
        if self._ring.is_on and self._looks > self._stacks_end:
            self._ring.stop()
        for device, level in levels(self._torch).items():
            if device not in self._watches:
                self._watches[device] = self._watch(device)
            self._watches[device].step_ended(level.allocated_bytes)
        self._spent += time.perf_counter() - begun

    def _watch(self, device: int) -> LeakWatch:
        total = self._torch.cuda.get_device_properties(device).total_memory
        return LeakWatch(total, lambda: self._map(device), lambda alert: self._tell(device, alert))

    def _map(self, device: int) -> dict[Stack, Held]:
        """What is live by stack. Asked for when growth is suspected: from then on stacks are kept."""
        found = live_by_stack(self._torch, device)
        self._ring.begin()
        self._stacks_end = self._looks + _STACKS
        return found

    def stop(self) -> None:
        """Keeps no stacks any more; a second call does nothing."""
        self._ring.stop()

    def _tell(self, device: int, alert: Alert) -> None:
        text = (
            f"memory in use at the ends of steps grows by {format_size(int(alert.per_step_bytes))} a step on device {device}: "
            f"full in about {alert.steps_left} more"
        )
        for line, size in _by_line(alert.stacks)[:_LINES]:
            text += f"\n  {format_size(size)} more from {line_words(line)}"
        text += "\n  record the program (hotbed record) to see what holds it"
        self._stacks_end = 0
        self.found.append(text)
        say(text)


def _by_line(stacks: Iterable[tuple[Stack, Held]]) -> list[tuple[Frame | None, int]]:
    """The program's own lines, the most bytes first."""
    sizes: dict[Frame | None, int] = {}
    for stack, held in stacks:
        own = next((Frame(*frame) for frame in stack if not in_library(frame[0])), None)
        sizes[own] = sizes.get(own, 0) + held.bytes
    return sorted(sizes.items(), key=lambda pair: -pair[1])
