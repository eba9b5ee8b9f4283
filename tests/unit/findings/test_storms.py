"""Allocation storms: driver calls in settled steps, by their cause."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hotbed.findings.case import Case
from hotbed.findings.storms import find
from hotbed.trace import Frame, load_trace
from hotbed.trace.recorded import Gap
from tests.unit.findings.traces import Program
from tests.unit.invented import ALLOC, DONE, GROW, MIB, REQUEST, SHRINK

if TYPE_CHECKING:
    from pathlib import Path


def job(steps: int, growing: range, *, flushed: bool = False, retries: int | None = None) -> Program:
    """Steps that each use 100 MiB; those in `growing` take it anew from the driver, `flushed`: after giving back as much."""
    program, base = Program(), 0
    for number in range(steps):
        begun = len(program.events)
        if number in growing:
            if flushed:
                program.add(SHRINK, base, 100 * MIB)
            base = (number + 1) << 32
            program.add(GROW, base, 100 * MIB)
        program.add(ALLOC, base, 100 * MIB, line=5)
        program.add(REQUEST, base, 100 * MIB)
        program.add(DONE, base, 100 * MIB)
        program.step(begun, retries=retries)
    return program


def test_growth_in_every_settled_step_is_a_storm_of_sizes() -> None:
    (found,) = find(Case(job(8, range(8)).trace()))
    assert (found.code, found.bytes, found.per_step_bytes) == ("storm/sizes", 600 * MIB, 100 * MIB)
    assert found.where == Frame("main.py", 5, "main")
    assert found.evidence[0].startswith(
        "6 of 6 settled steps took memory from the driver: 6 calls, 600.0 MiB in all"
    )


def test_growth_that_ends_with_the_warm_up_is_none() -> None:
    assert list(find(Case(job(8, range(2)).trace()))) == []


def test_growth_of_what_is_live_is_a_leaks_matter() -> None:
    program = Program()
    for number in range(8):
        begun = len(program.events)
        program.add(GROW, (number + 1) << 32, 100 * MIB)
        program.add(ALLOC, (number + 1) << 32, 90 * MIB, line=5)
        program.step(begun)
    assert list(find(Case(program.trace()))) == []


@pytest.mark.parametrize(("growing", "codes"), [(range(24), ["storm/sizes"]), (range(4), [])])
def test_of_a_program_without_training_parts_of_the_run_are_looked_at(
    growing: range, codes: list[str]
) -> None:
    program, base = Program(), 0
    for number in range(24):
        if number in growing:
            base = (number + 1) << 32
            program.add(GROW, base, 100 * MIB)
        for _ in range(6):
            program.add(ALLOC, base, 100 * MIB, line=5)
            program.add(REQUEST, base, 100 * MIB)
            program.add(DONE, base, 100 * MIB)
    program.step(0, "eval")
    assert [one.code for one in find(Case(program.trace()))] == codes


def test_steps_that_were_not_recorded_count_by_torchs_own_counters() -> None:
    trace = job(8, range(8)).trace()
    assert trace.recorded is not None
    steps = [
        step if step.number % 2 else replace(step, first_event=None, end_event=None, device_mallocs=3)
        for step in trace.recorded.steps
    ]
    (found,) = find(Case(replace(trace, recorded=replace(trace.recorded, steps=tuple(steps)))))
    # Settled are steps 2 to 7: three with one call of 100 MiB, three with three calls that nobody saw.
    assert found.title.startswith("2.0 cudaMalloc a step")
    assert found.bytes == 12 * 100 * MIB


def test_events_that_bridge_a_gap_are_no_calls() -> None:
    trace = job(8, range(8)).trace()
    assert trace.recorded is not None
    gap = Gap(event=8, bridged_events=24, allocations=100, begun_us=0, end_us=0)
    quiet = tuple(replace(step, device_mallocs=0) for step in trace.recorded.steps)
    made_up = replace(trace.recorded, steps=quiet, gaps=(gap,))
    assert list(find(Case(replace(trace, recorded=made_up)))) == []


def test_a_few_steps_tell_no_habit() -> None:
    assert list(find(Case(job(4, range(4)).trace()))) == []


@pytest.mark.parametrize(
    ("settings", "retries", "code"),
    [("", 1, "storm/retries"), ("garbage_collection_threshold:0.6", 0, "storm/gc-threshold")],
)
def test_memory_that_comes_and_goes_is_a_limit_or_the_garbage_collection(
    settings: str, retries: int, code: str
) -> None:
    program = job(8, range(1, 8), flushed=True, retries=retries)
    (found,) = find(Case(program.trace(settings=settings)))
    assert found.code == code


def test_emptied_caches_are_left_to_the_cache_findings(data: Path) -> None:
    assert list(find(Case(load_trace(data / "h200" / "empty_cache_loop.record.pickle.xz")))) == []
