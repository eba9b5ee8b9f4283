"""Tells growth that goes on from memory that varies: what is live at the ends of steps, allocating line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from hotbed.findings.allocations import BEFORE
from hotbed.replaying.cost import warm_up_steps
from hotbed.trace.model import Action

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.trace import Frame

    Index = npt.NDArray[np.int64]

Axis = Literal["train", "eval", "events"]
"""Training steps; forward passes without gradients; even parts of one such stretch, where nothing marks the passes."""
Course = Literal["steady", "slowing", "enlarging"]
"""Blocks are added at an even pace; at a falling pace; one block is replaced by a larger one again and again."""

MOST_ENDS: Final = 512
"""Step ends that are looked at; of more, evenly spaced ones."""
FEWEST_ENDS: Final = 5
"""settled step ends from which on growth can be told"""
FEWEST_ENLARGED: Final = 12
"""the same for blocks that are replaced by larger ones, which a cache does until it is full"""
_FEWEST_ADDITIONS: Final = 4
_PARTS: Final = 24
_FEWEST_EVENTS: Final = 5
"""of a part of a stretch without steps"""
_FEWEST_BLOCKS: Final = 3
_EVEN: Final = 0.8
"""Kendall's tau from which on a series counts as growing: of five steps in random order 4 % reach it, of eight 0.1 %"""
_ENLARGED: Final = 0.9
"""share of the steps at which such a block must be larger than before"""
_LASTING: Final = 0.4
"""What the last third adds, at least, for each byte of the first third; less is growth that ends."""
_LONGEST_PAUSE: Final = 0.4
"""of the settled steps without an addition"""


@dataclass(frozen=True, eq=False)
class LineGrowth:
    """One allocating line whose live memory grows from step to step.

    `kept` are the allocations (indices) made in settled steps and still held at the last step end.
    """

    line: int
    frame: Frame | None
    course: Course
    bytes: int
    """grown over the settled steps"""
    per_step_bytes: float
    blocks_per_step: float
    kept: Index


@dataclass(frozen=True, eq=False)
class Growth:
    """What the ends of `steps` show. `ends` are places, `numbers` the index of the step that ends there.

    `settled` is the first entry of both that counts; the ones before are the warm-up. `axis`: what the steps are.
    """

    axis: Axis
    steps: int
    ends: Index
    numbers: Index
    settled: int
    live: Index
    """bytes allocated at each end"""
    lines: tuple[LineGrowth, ...]
    """the growing ones, the fastest first"""

    @property
    def settled_steps(self) -> int:
        """From the first settled end to the last one."""
        return int(self.numbers[-1] - self.numbers[self.settled]) if len(self.numbers) > self.settled else 0

    @property
    def per_step_bytes(self) -> float:
        """The slope of all that is live: the median over all pairs of settled step ends (Theil and Sen)."""
        return slope(self.numbers[self.settled :], self.live[self.settled :])


def growth_of(case: Case) -> Growth | None:
    """None for a trace without steps whose ends are among the events."""
    for axis in ("train", "eval"):
        steps = [step for step in case.steps if step.phase == axis]
        known = [(number, step) for number, step in enumerate(steps) if step.end_event is not None]
        if not case.steps_are_recorded:
            # The last one lasts until the trace ends, and so has what the program drops then.
            known = known[:-1]
        if len(known) >= 2:
            ends = [(number, step.end_event) for number, step in known if step.end_event is not None]
            return _growth(case, "train" if axis == "train" else "eval", len(steps), ends)
    return within_evaluation(case)


def within_evaluation(case: Case) -> Growth | None:
    """Of the longest stretch without training steps in which was asked who holds memory, else of the longest.

    Up to its last allocation: what is freed then is clean-up.
    """
    asked = [sample.event for sample in case.recorded.samples if sample.event is not None]
    spans = [
        (step.first_event, step.end_event)
        for step in case.recorded.steps
        if step.phase == "eval" and step.first_event is not None and step.end_event is not None
    ]

    def counts(span: tuple[int, int]) -> tuple[bool, int]:
        return any(span[0] < event < span[1] for event in asked), span[1] - span[0]

    first, end = max(spans, key=counts, default=(0, 0))
    made = np.flatnonzero(case.trace.events.action[first:end] == Action.ALLOC)
    end = first + int(made[-1]) + 1 if len(made) else first
    if end - first < _PARTS * _FEWEST_EVENTS:
        return None
    places = np.linspace(first, end, _PARTS + 1).astype(np.int64)[1:].tolist()
    return _growth(case, "events", _PARTS, list(enumerate(places)))


def _growth(case: Case, axis: Axis, steps: int, known: list[tuple[int, int]]) -> Growth:
    warm_up = warm_up_steps(steps)
    chosen = np.unique(np.linspace(0, len(known) - 1, min(len(known), MOST_ENDS)).round().astype(np.int64))
    numbers = np.array([known[index][0] for index in chosen], np.int64)
    ends = np.array([known[index][1] for index in chosen], np.int64)
    live = np.array([case.allocated_at(int(end)) for end in ends], np.int64)
    settled = int(np.searchsorted(numbers, warm_up))
    lines: list[LineGrowth] = []
    if len(ends) - settled >= FEWEST_ENDS:
        lines = _lines(case, ends[settled:], numbers[settled:])
    return Growth(axis, steps, ends, numbers, settled, live, tuple(lines))


def _lines(case: Case, ends: Index, numbers: Index) -> list[LineGrowth]:
    made = case.allocations
    of_line = case.allocation_lines
    span = max(int(numbers[-1] - numbers[0]), 1)
    found = []
    for line in _candidates(case, ends):
        chosen = np.flatnonzero(of_line == line)
        count = _series(made.made[chosen], made.freed[chosen], np.ones(len(chosen), np.int64), ends)
        held = _series(made.made[chosen], made.freed[chosen], made.size[chosen], ends)
        course = course_of(count, held)
        if course is None:
            continue
        kept = chosen[
            (made.made[chosen] >= ends[0]) & (made.made[chosen] < ends[-1]) & (made.freed[chosen] >= ends[-1])
        ]
        grown = int(held[-1] - held[0])
        frame = case.lines[line]
        found.append(
            LineGrowth(
                line, frame, course, grown, slope(numbers, held), int(count[-1] - count[0]) / span, kept
            )
        )
    return sorted(found, key=lambda growth: -growth.per_step_bytes)


def _candidates(case: Case, ends: Index) -> list[int]:
    """Lines that hold more at the last end than at the first, and in the middle not less."""
    made = case.allocations
    lines = len(case.lines)
    levels = []
    for place in (ends[0], ends[len(ends) // 2], ends[-1]):
        live = made.live_at(int(place))
        levels.append(np.bincount(case.allocation_lines[live], weights=made.size[live], minlength=lines))
    first, middle, last = levels
    found: list[int] = np.flatnonzero((last > first) & (middle >= first)).tolist()
    return found


def _series(made: Index, freed: Index, weight: Index, ends: Index) -> Index:
    """[n] sum of `weight` over what is held at each of `ends`."""
    change = np.zeros(len(ends) + 1, np.int64)
    np.add.at(change, np.where(made == BEFORE, 0, np.searchsorted(ends, made, "right")), weight)
    np.subtract.at(change, np.searchsorted(ends, freed, "right"), weight)
    return change.cumsum()[:-1]


def course_of(count: Index, held: Index) -> Course | None:
    """How `count` blocks of `held` bytes at settled step ends grow; None if they do not, or not for sure."""
    if len(count) < FEWEST_ENDS:
        return None
    if count[-1] - count[0] < _FEWEST_BLOCKS:
        return _enlarging(count, held)
    added = np.flatnonzero(np.diff(count) > 0)
    pauses = np.diff([-1, *added, len(count) - 1])
    if len(added) < min(_FEWEST_ADDITIONS, len(count) - 1) or tau(count) < _EVEN * _tied(count):
        return None
    third = max((len(count) - 1) // 3, 1)
    first, last = int(count[third] - count[0]), int(count[-1] - count[-1 - third])
    even = last >= _LASTING * first and pauses.max() <= max(_LONGEST_PAUSE * len(count), 2)
    return "steady" if even else "slowing"


def _enlarging(count: Index, held: Index) -> Course | None:
    steps = np.diff(held)
    if (
        len(held) < FEWEST_ENLARGED
        or (steps < 0).any()
        or (steps > 0).mean() < _ENLARGED
        or count[-1] < count[0]
    ):
        return None
    return "enlarging"


def tau(values: Index) -> float:
    """Kendall's rank correlation of `values` with their order, ties counting as none: 1 grows at every step."""
    pairs = len(values) * (len(values) - 1) / 2
    above = np.triu(np.sign(values[None, :] - values[:, None]), 1)
    return float(above.sum() / pairs) if pairs else 0.0


def _tied(values: Index) -> float:
    """What tau is at most for values that repeat as these do."""
    return tau(np.sort(values))


def slope(numbers: Index, values: Index) -> float:
    """Median of the slopes between all pairs of points (Theil and Sen), of 128 points at most; 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    chosen = np.unique(np.linspace(0, len(values) - 1, min(len(values), 128)).round().astype(np.int64))
    x, y = numbers[chosen].astype(np.float64), values[chosen].astype(np.float64)
    first, second = np.triu_indices(len(x), 1)
    return float(np.median((y[second] - y[first]) / (x[second] - x[first])))
