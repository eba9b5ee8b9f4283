"""Tells what outlived a step in which no addresses were noted, by its like in steps in which they were."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.marking.blocks import Blocks
    from hotbed.trace.marking.phases import Moment, Stretch

    Category = npt.NDArray[np.int8]
    Index = npt.NDArray[np.int64]

UNSEEN = -1
"""no note had its address"""
_MIXED = -2
_ENOUGH_STEPS = 2


def not_noted(moments: Sequence[Moment], steps: Sequence[Stretch]) -> list[Stretch]:
    """Training steps of which events are there, but not all addresses of what optimizers stepped."""
    places = [moment.place for moment in moments]
    found = []
    for step in steps:
        if step.phase == "train" and step.end_event > step.first_event:
            inside = slice(bisect_right(places, step.first_event), bisect_right(places, step.end_event))
            kinds = [moment.kind for moment in moments[inside]]
            if not 0 < kinds.count("stepped") == kinds.count("step"):
                found.append(step)
    return found


def by_likeness(
    blocks: Blocks, seen: Category, moments: Sequence[Moment], steps: Sequence[Stretch]
) -> tuple[Index, Category]:
    """Of what was made in training steps without notes and outlived an optimizer's step: what has no like; categories.

    `seen`: category of each of blocks.allocs by address, or UNSEEN; so is the category returned. Alike are blocks of one size
    that were made with one stack and outlived a step. They count where in two steps or more all of them had the same category,
    and where as many of them were made in one of those steps as in the one that is to be told.
    """
    training = [step for step in steps if step.phase == "train" and step.end_event > step.first_event]
    whole = np.array([_whole(blocks, step) for step in training] + [False])
    missed = {step.first_event for step in not_noted(moments, steps)}
    known = np.array([step.first_event not in missed for step in training] + [False])
    likely = np.full(len(blocks.allocs), UNSEEN, np.int8)
    if not missed:
        return np.zeros(0, np.int64), likely
    number, step_of = _survivors(blocks, moments, training)
    kind = _kinds(blocks, number)
    pair, pair_of, count = np.unique(kind * len(whole) + step_of, return_inverse=True, return_counts=True)
    pair_kind, pair_step = pair // len(whole), pair % len(whole)
    evidence = (whole & known)[pair_step]
    told = _agreed(kind, seen[number], evidence[pair_of], pair_kind[evidence])
    amount = pair_kind * (len(number) + 1) + count
    same = whole[pair_step] & np.isin(amount, amount[evidence])
    open_ = ~known[step_of] & (seen[number] == UNSEEN)
    right = open_ & same[pair_of] & (told[kind] != _MIXED)
    likely[number[right]] = told[kind[right]]
    return number[open_ & ~right], likely


def _agreed(kind: Index, seen: Category, evidence: npt.NDArray[np.bool_], in_steps: Index) -> Category:
    """For each kind what all blocks of it were in steps with notes, UNSEEN included; _MIXED where they differ or are too few.

    `in_steps`: the kind once for each such step that has it.
    """
    kinds = int(kind.max(initial=-1)) + 1
    low, high = np.full(kinds, 127, np.int8), np.full(kinds, -128, np.int8)
    np.minimum.at(low, kind[evidence], seen[evidence])
    np.maximum.at(high, kind[evidence], seen[evidence])
    enough = np.bincount(in_steps, minlength=kinds) >= _ENOUGH_STEPS
    return np.where(enough & (low == high), low, np.int8(_MIXED))


def _survivors(blocks: Blocks, moments: Sequence[Moment], training: Sequence[Stretch]) -> tuple[Index, Index]:
    """Numbers of the allocations in training steps that were alive when an optimizer had stepped next; and of their steps."""
    number = np.arange(len(blocks.allocs))
    firsts = np.array([step.first_event for step in training], np.int64)
    ends = np.array([step.end_event for step in training] + [-1], np.int64)
    stepped = np.array([m.place for m in moments if m.kind == "stepped"] + [2**62], np.int64)
    step = np.searchsorted(firsts, blocks.allocs, "right") - 1
    place = stepped[np.searchsorted(stepped, blocks.allocs, "right")]
    lived = (step >= 0) & (place <= ends[step]) & (blocks.freed_at >= place)
    return number[lived], step[lived]


def _kinds(blocks: Blocks, number: Index) -> Index:
    """A number for each (stack, size)."""
    events = blocks.allocs[number]
    sizes, size = np.unique(blocks.trace.events.size[events], return_inverse=True)
    stack = blocks.trace.events.stack[events].astype(np.int64) + 1
    kind: Index = np.unique(stack * max(len(sizes), 1) + size, return_inverse=True)[1]
    return kind


def _whole(blocks: Blocks, step: Stretch) -> bool:
    lost = step.first.in_gap or step.end.in_gap
    return not lost and blocks.counted.unbroken(step.first_event, step.end_event)
