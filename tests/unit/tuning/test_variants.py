"""Runs that the recorded one might have been: what must stay and what may change."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hotbed.replaying.program import Op, Program, compile_trace
from hotbed.replaying.steps import Steps
from hotbed.tuning.bounds import lower_bound
from hotbed.tuning.variants import can_reorder, first_part, reordered, with_timing
from tests.unit.invented import ALLOC, DONE, MIB, REQUEST, trace_of, training

SIZES = [64 * MIB, 32 * MIB, 96 * MIB, 16 * MIB, 48 * MIB, 64 * MIB, 80 * MIB, 8 * MIB]


def program_of_steps() -> Program:
    program = compile_trace(training(SIZES))
    starts = [index for index, size in enumerate(program.size) if size in SIZES]
    return replace(program, steps=Steps(tuple(starts), "recorded"))


def assert_valid(program: Program) -> None:
    """Every allocation is made once, freed at most once, and not before it is made."""
    made, gone = set(), set()
    for op, allocation in zip(program.op, program.allocation, strict=True):
        if op in (Op.ALLOC, Op.TRACKED_ALLOC):
            assert allocation not in made
            made.add(allocation)
        elif op in (Op.FREE, Op.PENDING_FREE):
            assert allocation in made - gone
            gone.add(allocation)


def test_the_lower_bound_is_the_peak_of_live_bytes_in_units_of_512() -> None:
    program = compile_trace(trace_of([(ALLOC, 1, 700), (ALLOC, 2, 1), (REQUEST, 1, 700), (ALLOC, 3, 512)]))
    assert lower_bound(program) == 1024 + 512


def test_steps_in_another_order_make_the_same_requests() -> None:
    program = program_of_steps()
    assert can_reorder(program)
    other = reordered(program, seed=3)
    assert_valid(other)
    assert Counter(other.size) == Counter(program.size)
    assert list(other.size) != list(program.size)
    assert len(other.steps) == len(program.steps)


def test_first_and_last_step_keep_their_places() -> None:
    other = reordered(program_of_steps(), seed=3)
    sizes = [other.size[start] for start in other.steps.starts]
    assert (sizes[0], sizes[-1]) == (SIZES[0], SIZES[-1])
    assert sorted(sizes) == sorted(SIZES)


def test_what_a_step_leaves_for_the_next_lives_as_long_in_the_new_order() -> None:
    """With equal steps every order is the same run: its lower bound cannot change."""
    program = compile_trace(training([64 * MIB] * 8))
    starts = [index for index, size in enumerate(program.size) if size == 64 * MIB]
    program = replace(program, steps=Steps(tuple(starts), "recorded"))
    assert lower_bound(reordered(program, seed=5)) == lower_bound(program)


def test_the_first_part_ends_at_a_step() -> None:
    program = program_of_steps()
    part = first_part(program, 0.4)
    assert len(part) == program.steps.starts[3]
    assert len(part.steps) == 3


def test_the_first_part_of_a_trace_without_steps() -> None:
    program = compile_trace(trace_of([(ALLOC, address, 512) for address in range(1, 11)]))
    assert len(first_part(program, 0.6)) == 6


def test_side_streams_may_end_at_once_or_late() -> None:
    events = [(ALLOC, 1, 700), (REQUEST, 1, 700), (ALLOC, 2, 9), (ALLOC, 3, 9), (DONE, 1, 700), (ALLOC, 4, 9)]
    program = compile_trace(trace_of(events))
    at_once = [Op(value) for value in with_timing(program, None).op]
    assert at_once[:3] == [Op.TRACKED_ALLOC, Op.PENDING_FREE, Op.COMPLETE]
    places = {list(with_timing(program, seed).op).index(Op.COMPLETE) for seed in range(30)}
    assert min(places) >= 2
    assert len(places) > 1
