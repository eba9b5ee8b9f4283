"""Watches what is live at the ends of steps while a program runs, and tells once when it grows without end, and where."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from hotbed.recording.memory_map import mapped_segments

if TYPE_CHECKING:
    from collections.abc import Callable

Stack = tuple[tuple[str, int, str], ...]
"""(file, line, function) of each frame, innermost first"""

MOST_POINTS = 128
CHECKS = (16, 24, 32, 48, 64, 96, 128)
"""Numbers of points at which growth is looked for: each look at n of them costs about n² / 10 microseconds."""
_WARM_UP = 0.25
_EVEN = 0.8
"""Kendall's tau from which on the points count as growing, as in hotbed.findings.growth"""
_LASTING = 0.4
"""What the last third adds, at least, for each byte of the first third."""
_FAR_STEPS = 1_000_000
"""Growth that fills the GPU only after so many steps is not worth an alert."""
_FEWEST_STEPS = 250
"""Before, a buffer that fills or garbage that is yet to be collected looks the same; earlier only if the GPU is full within
as many steps as have been."""
_FEWEST_BLOCKS = 3


class Held(NamedTuple):
    """Live blocks of one stack."""

    blocks: int
    bytes: int


@dataclass(frozen=True)
class Alert:
    """`stacks` are those that hold more than before, the most first, with what they hold more."""

    steps: int
    live_bytes: int
    per_step_bytes: float
    steps_left: int
    stacks: tuple[tuple[Stack, Held], ...]


class LeakWatch:
    """Feed it with step_ended(). `memory_map` gives what is live by stack; it is asked when growth is suspected, and again
    when that has gone on: only what grew in between is told, by `alert`, once.

    Of a long run evenly many points are kept, each the least live of its steps: what comes and goes does not count.
    """

    def __init__(
        self, total_bytes: int, memory_map: Callable[[], dict[Stack, Held]], alert: Callable[[Alert], None]
    ) -> None:
        self._total_bytes, self._memory_map, self._alert = total_bytes, memory_map, alert
        self._points: list[int] = []
        self._stride = 1
        self._steps = 0
        self._least: int | None = None
        self._before: dict[Stack, Held] | None = None
        self.alerted = False

    def step_ended(self, live_bytes: int) -> None:
        """A step is over and `live_bytes` are allocated. Costs a microsecond, and a look at the points now and then."""
        self._steps += 1
        self._least = live_bytes if self._least is None else min(self._least, live_bytes)
        if self._steps % self._stride or self.alerted:
            return
        self._points.append(self._least)
        self._least = None
        if len(self._points) in CHECKS:
            self._look()
        if len(self._points) == MOST_POINTS:
            pairs = zip(self._points[::2], self._points[1::2], strict=True)
            self._points, self._stride = [min(pair) for pair in pairs], 2 * self._stride

    def _look(self) -> None:
        points = self._points[round(_WARM_UP * len(self._points)) :]
        slope = growth_of(points) / self._stride
        left = int((self._total_bytes - points[-1]) / slope) if slope > 0 else _FAR_STEPS
        if left >= _FAR_STEPS:
            self._before = None
            return
        if self._before is None:
            self._before = self._memory_map()
            return
        if self._steps < _FEWEST_STEPS and left > self._steps:
            return
        before, self._before = self._before, self._memory_map()
        stacks = grown(before, self._before)
        if stacks:
            self.alerted, self._before = True, None
            self._alert(Alert(self._steps, points[-1], slope, max(left, 0), tuple(stacks)))


def growth_of(points: list[int]) -> float:
    """Bytes that `points` grow by from one to the next, the median over all pairs; 0 if they do not, or ever slower."""
    pairs = [
        (later - earlier, j - i)
        for i, earlier in enumerate(points)
        for j, later in enumerate(points[i + 1 :], i + 1)
    ]
    if not pairs or sum((rise > 0) - (rise < 0) for rise, _ in pairs) < _EVEN * len(pairs):
        return 0.0
    third = max((len(points) - 1) // 3, 1)
    if points[-1] - points[-1 - third] < _LASTING * (points[third] - points[0]):
        return 0.0
    return float(median(rise / distance for rise, distance in pairs))


def grown(before: dict[Stack, Held], after: dict[Stack, Held]) -> list[tuple[Stack, Held]]:
    """Stacks that hold more blocks than before, and how much more; the most bytes first."""
    nothing = Held(0, 0)
    more = [
        (
            stack,
            Held(
                held.blocks - before.get(stack, nothing).blocks, held.bytes - before.get(stack, nothing).bytes
            ),
        )
        for stack, held in after.items()
    ]
    found = [(stack, held) for stack, held in more if held.blocks >= _FEWEST_BLOCKS and held.bytes > 0]
    return sorted(found, key=lambda pair: -pair[1].bytes)


def live_by_stack(torch: Any, device: int) -> dict[Stack, Held]:
    """What is live on `device` by stack; blocks from before torch's history was on have an empty one."""
    found: dict[Stack, Held] = {}
    for segment in mapped_segments(torch):
        if segment["device"] != device:
            continue
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                frames = block.get("frames") or ()
                stack = tuple((frame["filename"], frame["line"], frame["name"]) for frame in frames)
                held = found.get(stack, Held(0, 0))
                found[stack] = Held(held.blocks + 1, held.bytes + block["size"])
    return found
