"""Other runs that the recorded one might have been: steps in another order, side streams faster or slower."""

from __future__ import annotations

import itertools
import random
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hotbed.replaying.program import RELEASES, Op, Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MADE = (Op.ALLOC, Op.TRACKED_ALLOC)


def with_timing(program: Program, seed: int | None) -> Program:
    """`program` with side-stream work ending at other times.

    None: at once; a seed: after 0 to 2 times the recorded number of ops, drawn for each free. When such work
    ends belongs to a run, not to settings. Programs without pending frees come back unchanged.
    """
    if not program.has_pending_frees:
        return program
    draw = random.Random(seed)
    requested: dict[int, int] = {}
    keys = []
    for index, (op, allocation) in enumerate(zip(program.op, program.allocation, strict=True)):
        key = float(index)
        if op == Op.PENDING_FREE:
            requested[allocation] = index
        elif op == Op.COMPLETE:
            start = requested[allocation]
            delay = 0.0 if seed is None else draw.uniform(0, 2) * (index - start)
            key = start + delay + 0.5
        keys.append(key)
    return _taken(program, sorted(range(len(keys)), key=keys.__getitem__), program.steps.starts)


def first_part(program: Program, share: float) -> Program:
    """`program` cut off after about `share` of it: at the start of a step, where it has steps."""
    starts = program.steps.starts
    end = starts[int(len(starts) * share)] if len(starts) > 1 else int(len(program) * share)
    return _taken(program, range(end), [start for start in starts if start < end])


def can_reorder(program: Program) -> bool:
    """Whether there are steps to exchange: at least two that leave nothing behind beyond the step after them."""
    return len(_exchangeable(program)) >= 2


def reordered(program: Program, seed: int) -> Program:
    """`program` with its exchangeable steps in an order drawn from `seed`.

    Steps that leave lasting memory behind (the first with its optimizer state, those of a leak), the first and
    the last stay in their places. What a step leaves alive for the next one lives into its next one in the new
    order, and ends there at the same place.
    """
    movable = _exchangeable(program)
    shuffled = movable.copy()
    random.Random(seed).shuffle(shuffled)
    order = list(range(len(program.steps)))
    for place, step in zip(movable, shuffled, strict=True):
        order[place] = step
    return _Reordering(program, order).build()


def _exchangeable(program: Program) -> list[int]:
    spans = _spans(program)
    released_in = {
        program.allocation[index]: step
        for step, span in enumerate(spans)
        for index in range(*span)
        if program.op[index] in RELEASES
    }
    return [
        step
        for step in range(1, len(spans) - 1)
        if all(
            released_in.get(program.allocation[index], len(spans)) <= step + 1
            for index in range(*spans[step])
            if program.op[index] in _MADE
        )
    ]


def _spans(program: Program) -> list[tuple[int, int]]:
    """(first op, end) of each step."""
    starts = [*program.steps.starts, len(program)]
    return list(itertools.pairwise(starts))


@dataclass(frozen=True)
class _Release:
    """A release whose allocation is older than its step: it moves with the allocation, not with the step."""

    op: int
    position: int
    """step, in the new order, in which it happens"""
    place: int
    """how many of that step's own ops come before it"""


class _Reordering:
    """Builds the new order of ops; `order[k]` is the recorded step that comes k-th."""

    def __init__(self, program: Program, order: list[int]) -> None:
        self.program = program
        self.order = order
        self.spans = _spans(program)
        self.made_in = self._steps_of_allocations()

    def _steps_of_allocations(self) -> dict[int, int]:
        """allocation → recorded step that makes it; set-up allocations are absent."""
        program = self.program
        return {
            program.allocation[index]: step
            for step, (begin, end) in enumerate(self.spans)
            for index in range(begin, end)
            if program.op[index] in _MADE
        }

    def build(self) -> Program:
        program = self.program
        position_of = {step: position for position, step in enumerate(self.order)}
        moved = self._moved_releases(position_of)
        ops = list(range(self.spans[0][0]))
        starts = []
        for position, step in enumerate(self.order):
            starts.append(len(ops))
            own = [index for index in range(*self.spans[step]) if not self._is_inherited(index, step)]
            ops += _merged(own, [release for release in moved if release.position == position])
        return _taken(program, ops, starts)

    def _is_inherited(self, index: int, step: int) -> bool:
        program = self.program
        if program.op[index] not in RELEASES:
            return False
        return self.made_in.get(program.allocation[index], -1) != step

    def _moved_releases(self, position_of: dict[int, int]) -> list[_Release]:
        moved = []
        for step, span in enumerate(self.spans):
            own = 0
            for index in range(*span):
                if not self._is_inherited(index, step):
                    own += 1
                    continue
                maker = self.made_in.get(self.program.allocation[index])
                # What was made in set-up or in a step that keeps its place ends where it ended.
                moves = maker is not None and self.order[maker] != maker
                position = position_of[maker] + step - maker if moves and maker is not None else step
                moved.append(_Release(index, position, own))
        return moved


def _merged(own: Sequence[int], releases: Sequence[_Release]) -> list[int]:
    """`own` ops of a step with `releases` put in at their places."""
    keyed = [(place, 1, index) for place, index in enumerate(own)]
    keyed += [(min(release.place, len(own)), 0, release.op) for release in releases]
    return [index for _, _, index in sorted(keyed)]


def _taken(program: Program, ops: Sequence[int], starts: Iterable[int]) -> Program:
    """`program` with the ops of `ops`, in that order, and steps beginning at `starts`."""

    def column(values: array[int]) -> array[int]:
        return array(values.typecode, map(values.__getitem__, ops))

    return replace(
        program,
        op=column(program.op),
        allocation=column(program.allocation),
        size=column(program.size),
        stream=column(program.stream),
        pool=column(program.pool),
        event=column(program.event),
        steps=replace(program.steps, starts=tuple(starts)),
    )
