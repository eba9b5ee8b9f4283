"""Growth told from variation, owners and streams, on traces made by hand and on those of the H200."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hotbed.findings import leaks, steady
from hotbed.findings.case import Case
from hotbed.findings.growth import course_of, slope
from hotbed.trace import Action, Frame, load_trace
from hotbed.trace.model import DeviceInfo
from hotbed.trace.recorded import CacheCall, Failure, Holding, Sample
from tests.unit.findings.traces import Program

if TYPE_CHECKING:
    from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
ALLOC, REQUEST, DONE = Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED


def course(counts: list[int], sizes: list[int] | None = None) -> str | None:
    held = sizes if sizes is not None else [MIB * count for count in counts]
    return course_of(np.array(counts), np.array(held))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (list(range(12)), "steady"),
        ([step // 3 for step in range(24)], "steady"),
        ([3, 5, 4, 6, 8, 7, 9, 11, 10, 12], "steady"),
        ([0, 8, 12, 14, 15, 15, 16, 16, 16, 17], "slowing"),
        ([4, 4, 4, 4, 4, 4], None),
        ([0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4], None),
        ([7, 2, 9, 4, 1, 8, 3, 10], None),
        ([0, 0, 0, 0, 9], None),
        ([0, 1, 2, 3], None),
    ],
)
def test_courses_of_block_counts(counts: list[int], expected: str | None) -> None:
    assert course(counts) in ({expected} if expected else {None, "slowing"})


def test_one_block_that_grows_at_each_step() -> None:
    ones = [1] * 14
    assert course(ones, [MIB * step for step in range(14)]) == "enlarging"
    assert course(ones[:8], [MIB * step for step in range(8)]) is None
    assert course(ones, [MIB * (step % 7) for step in range(14)]) is None


def test_the_slope_heeds_no_outlier() -> None:
    levels = np.array([100 * step for step in range(20)])
    levels[7] = 10**9
    assert slope(np.arange(20), levels) == 100


def growing(steps: int = 12, samples: bool = True, **changes: Any) -> Case:
    """A step keeps 64 MiB of line 7, which a list has that line 9 fills."""
    program = Program()
    kept = []
    for step in range(steps):
        begun = len(program.events)
        address = (step + 1) * 4 * GIB
        program.add(ALLOC, address, 64 * MIB, line=7)
        program.add(ALLOC, GIB, 80 * MIB, line=5)
        program.add(REQUEST, GIB, 80 * MIB)
        program.add(DONE, GIB, 80 * MIB)
        program.step(begun)
        kept.append(address)
    here = Frame("main.py", 9, "main")
    row = Holding(
        "container", "list `__main__.x`", "__main__.x", here, steps, steps * 64 * MIB, 0, tuple(kept)
    )
    sample = Sample(0, steps - 1, len(program.events), (row,))
    recorded = {"samples": (sample,)} if samples else {}
    info = DeviceInfo(total_bytes=changes.pop("total_bytes", 80 * GIB))
    return Case(program.trace({**recorded, **changes}, device_info=info))


def test_growth_names_owner_line_and_the_steps_that_are_left() -> None:
    (found,) = leaks.find(growing())
    assert (found.code, found.severity, found.per_step_bytes) == (
        "leak/growing-container",
        "problem",
        64 * MIB,
    )
    assert found.where == Frame("main.py", 9, "main")
    assert found.others == (Frame("main.py", 7, "main"),)
    left = (80 * GIB - 12 * 64 * MIB) // (64 * MIB)
    assert any(f"full after {left:,} more steps" in sentence for sentence in found.evidence)


def test_growth_without_an_owner_names_the_allocating_line() -> None:
    (found,) = leaks.find(growing(samples=False))
    assert (found.code, found.where) == ("leak/unknown-owner", Frame("main.py", 7, "main"))


def test_few_steps_are_no_leak_but_say_how_many_more_tell() -> None:
    case = growing(5)
    assert list(leaks.find(case)) == []
    (found,) = steady.find(case)
    assert (found.code, found.severity) == ("memory/still-growing", "notice")
    assert "1 more steps tell" in found.evidence[1]


def test_growth_that_no_run_lives_to_see_is_left_out() -> None:
    assert list(leaks.find(growing(total_bytes=64 * MIB * 10**9))) == []


def test_blocks_that_wait_for_a_stream() -> None:
    program = Program()
    for address in range(8):
        program.add(ALLOC, address * GIB, 100 * MIB, line=3)
        program.add(REQUEST, address * GIB, 100 * MIB)
    for address in range(8):
        program.add(DONE, address * GIB, 100 * MIB)
    (found,) = leaks.find(Case(program.trace()))
    assert (found.code, found.bytes, found.where) == (
        "leak/pending-stream",
        800 * MIB,
        Frame("main.py", 3, "main"),
    )


def test_an_exception_that_holds_memory_when_it_runs_out() -> None:
    row = Holding("traceback", "exception OutOfMemoryError", "", Frame("main.py", 4, "main"), 9, 10 * GIB)
    failure = Failure(1, None, None, None, "", GIB, 20 * GIB, 21 * GIB, 0, 24 * GIB, None, None, None)
    program = Program()
    program.add(ALLOC, GIB, MIB, line=1)
    found = list(
        leaks.find(Case(program.trace({"samples": (Sample(2, 3, 0, (row,)),), "failures": (failure,)})))
    )
    assert [(leak.code, leak.where) for leak in found] == [("leak/traceback", row.where)]


@pytest.mark.parametrize(("collections", "expected"), [(3, ["leak/reference-cycle"]), (1, [])])
def test_collections_that_free_much_again_and_again_end_cycles(collections: int, expected: list[str]) -> None:
    program = Program()
    calls = []
    for _ in range(collections):
        begun = len(program.events)
        for block in range(4):
            program.add(ALLOC, block * GIB, 50 * MIB, line=8)
            program.step(begun)
            begun = len(program.events)
        calls.append(CacheCall("gc", None, 0, 0.1, len(program.events), 1, 200 * MIB, 0, GIB, GIB))
        for block in range(4):
            program.add(REQUEST, block * GIB, 50 * MIB)
            program.add(DONE, block * GIB, 50 * MIB)
    found = list(leaks.find(Case(program.trace({"calls": tuple(calls)}))))
    assert [leak.code for leak in found] == expected
    assert all(leak.where == Frame("main.py", 8, "main") for leak in found)


@pytest.mark.parametrize(
    "name", ["bert_large", "bert_varlen", "detection", "llama_ckpt", "resnet50", "token_budget", "unet_mixed"]
)
def test_real_training_is_accused_of_nothing(data: Path, name: str) -> None:
    case = Case(load_trace(data / "h200" / f"{name}.record.pickle.xz"))
    assert list(leaks.find(case)) == []
    assert all(finding.severity == "fine" for finding in steady.find(case))
