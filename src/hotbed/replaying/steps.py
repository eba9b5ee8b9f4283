"""Where the training steps of a trace lie: declared by the recorder, or read off the rise and fall of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.model import NONE, Action, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

# A step is a swing of the live-bytes curve. How deep is unknown, so these shares of the highest level are tried;
# the right one makes steps that are alike in their number of allocations.
_SWINGS = (0.02, 0.04, 0.08, 0.12, 0.2, 0.3, 0.4)
_MIN_STEPS = 4
# Allocations per step may vary this much (standard deviation over mean) before the swings are no steps.
_MAX_VARIATION = 0.25
_CLEARLY = 0.01
_LOOKED_AT = 1 << 19
"""stretches of a curve that are looked at: where each is long, its lowest and highest point stand for it"""
_FRAGMENT = 0.6


@dataclass(frozen=True)
class Steps:
    """`starts`: index of the first entry of each step, ascending; `source`: "recorded", "inferred", "unknown".

    Entries before the first start belong to set-up. `step_ms` is the mean time of a step after the first;
    None where the trace carries no times.
    """

    starts: tuple[int, ...] = ()
    source: str = "unknown"
    step_ms: float | None = None

    def __len__(self) -> int:
        return len(self.starts)


def find_steps(trace: Trace) -> Steps:
    """The steps of `trace`, with starts as event indices."""
    declared = trace.events.step
    if (declared != NONE).any():
        starts = np.flatnonzero(np.diff(declared, prepend=NONE) > 0).tolist()
        return Steps(tuple(starts), "recorded", _step_ms(trace, starts))
    starts = _most_regular(trace)
    return Steps(tuple(starts), "inferred" if starts else "unknown", _step_ms(trace, starts))


def live_bytes(trace: Trace) -> npt.NDArray[np.int64]:
    """[n] requested bytes that are live after each event, blocks older than the trace included."""
    ghosts = sum(
        block.requested_bytes
        for segment in trace.initial_segments
        for block in segment.blocks
        if block.state == "active_allocated"
    )
    action = trace.events.action
    sign = (action == Action.ALLOC).astype(np.int64) - (action == Action.FREE_REQUESTED).astype(np.int64)
    live: npt.NDArray[np.int64] = ghosts + (sign * trace.events.size).cumsum()
    return live


def _most_regular(trace: Trace) -> list[int]:
    """Starts of the swings whose steps are most alike; empty where no depth of swing gives steps at all."""
    live = live_bytes(trace)
    if not len(live):
        return []
    made = (trace.events.action == Action.ALLOC).cumsum()
    candidates = [_without_fragments(made, starts) for starts in _swings(live)]
    found = [(_variation(made, starts), starts) for starts in candidates]
    best: tuple[float, list[int]] = (_MAX_VARIATION, [])
    # Deep swings first: a shallow one, of which a step has several, must be clearly more regular.
    for variation, starts in reversed(found):
        if variation < best[0] - _CLEARLY:
            best = variation, starts
    return best[1]


def _without_fragments(made: npt.NDArray[np.int64], starts: list[int]) -> list[int]:
    """`starts` without those that cut a step in pieces much smaller than the others."""
    if len(starts) < _MIN_STEPS:
        return starts
    enough = _FRAGMENT * float(np.median(np.diff(made[starts])[1:]))
    kept = starts[:1]
    for start in starts[1:]:
        if made[start] - made[kept[-1]] >= enough:
            kept.append(start)
    return kept


def _swings(live: npt.NDArray[np.int64]) -> list[list[int]]:
    """For each depth of swing, shallow first, the indices at which the curve begins to rise."""
    swings = []
    kept = _extremes(live)
    indices, values = kept.tolist(), live[kept].tolist()
    for share in _SWINGS:
        turns = _turning_points(values, share * int(live.max()))
        indices, values = [indices[turn] for turn in turns], [values[turn] for turn in turns]
        swings.append(
            [index for index, here, after in zip(indices, values, values[1:], strict=False) if after > here]
        )
    return swings


def _extremes(live: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Indices to look at: all, but of a long curve only the lowest and the highest of each short stretch."""
    width = -(-len(live) // _LOOKED_AT)
    if width < 4:
        return np.arange(len(live))
    whole = len(live) // width
    rows = live[: whole * width].reshape(whole, width)
    starts = np.arange(whole) * width
    rest = np.arange(whole * width, len(live))
    return np.unique(np.concatenate((starts + rows.argmin(1), starts + rows.argmax(1), rest)))


def _turning_points(values: list[int], depth: float) -> list[int]:
    """Positions where the curve turns after a swing of at least `depth`: troughs and peaks in turn."""
    turns: list[int] = []
    low = high = 0
    rising = True
    for position, value in enumerate(values):
        if rising:
            if value > values[high]:
                high = position
            elif values[high] - value >= depth:
                turns.append(high)
                low, rising = position, False
        elif value < values[low]:
            low = position
        elif value - values[low] >= depth:
            turns.append(low)
            high, rising = position, True
    return [0, *turns, high if rising else low]


def _variation(made: npt.NDArray[np.int64], starts: list[int]) -> float:
    """How unlike the steps are in allocations, the first (set-up) and the last (teardown) left out."""
    if len(starts) < _MIN_STEPS:
        return float("inf")
    counts = np.diff(made[starts])[1:]
    return float(counts.std() / counts.mean()) if counts.mean() else float("inf")


def _step_ms(trace: Trace, starts: list[int]) -> float | None:
    """Mean milliseconds of the steps after the first; with no steps, time of the whole trace.

    The mean, since the host runs ahead of the device and catches up in the steps that wait for it.
    """
    times = trace.events.time_us
    if not len(times) or not times.any():
        return None
    if len(starts) < _MIN_STEPS:
        return float(times[-1] - times[0]) / 1000
    return float(times[-1] - times[starts[1]]) / (len(starts) - 1) / 1000
