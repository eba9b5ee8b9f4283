"""Calls of empty_cache() and gc.collect(): what they cost and whether they paid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.findings import cache
from hotbed.findings.cache import find
from hotbed.findings.case import Case
from hotbed.findings.reruns import Reruns, rerun
from hotbed.trace import Frame, load_trace
from hotbed.trace.recorded import CacheCall
from tests.unit.findings.traces import Program
from tests.unit.invented import ALLOC, DONE, GROW, MIB, REQUEST, SHRINK

if TYPE_CHECKING:
    from pathlib import Path

SITE = Frame("main.py", 20, "main")


def loop(sizes: list[int], *, seconds: float = 0.002, every: int = 1) -> Case:
    """Steps that take sizes[i] MiB from the driver and use them; `every` so many of them gives them back."""
    program = Program()
    for number, mib in enumerate(sizes):
        begun = len(program.events)
        base = (number + 1) << 32
        size = mib * MIB
        program.add(GROW, base, size)
        program.add(ALLOC, base, size, line=5)
        program.add(REQUEST, base, size)
        program.add(DONE, base, size)
        if number % every == 0:
            program.calls.append(
                CacheCall("empty_cache", SITE, 0, seconds, len(program.events), number, 0, 0, size, 0)
            )
            program.add(SHRINK, base, size)
        program.step(begun)
    trace = program.trace()
    trace.events.time_us[:] = range(0, 1000 * len(trace.events), 1000)
    return Case(trace)


@pytest.fixture
def reruns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No torch to replay with: the events alone must do."""
    monkeypatch.setattr(cache, "rerun", lambda trace: None)


@pytest.mark.usefixtures("reruns")
def test_calls_whose_memory_is_taken_again_are_useless() -> None:
    (found,) = find(loop([100] * 8))
    assert (found.code, found.severity, found.where) == ("cache/useless", "problem", SITE)
    assert (found.bytes, found.per_step_bytes) == (800 * MIB, 100 * MIB)
    # The last call has no step behind it.
    assert (
        "8 calls, 8 with something to return: 800.0 MiB in all; 700.0 MiB of it were taken again, in 7 cudaMallocs"
        in found.evidence
    )
    assert "after 7 of 8 calls reserved memory rose to where it had been" in found.evidence[2]


@pytest.mark.usefixtures("reruns")
def test_calls_after_which_memory_stays_low_paid() -> None:
    (found,) = find(loop([400, 200, 100, 50]))
    assert found.code == "cache/useful"
    assert "after 0 of 4 calls reserved memory rose to where it had been" in found.evidence[2]


@pytest.mark.parametrize(("without", "code"), [(100, "cache/useless"), (300, "cache/useful")])
def test_a_replay_decides_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, without: int, code: str
) -> None:
    answer = Reruns(100 * MIB, 120 * MIB, without * MIB, 16, 2)
    monkeypatch.setattr(cache, "rerun", lambda trace: answer)
    (found,) = find(loop([100] * 8))
    assert found.code == code
    assert (
        f"peaks at {without}.0 MiB instead of 100.0 MiB, with 2 driver calls instead of 16"
        in found.evidence[2]
    )
    if code == "cache/useful":
        assert "every tenth call would reserve 120.0 MiB" in str(found.fix)


@pytest.mark.usefixtures("reruns")
def test_two_calls_are_no_loop() -> None:
    (found,) = find(loop([100] * 2))
    assert (found.code, found.severity) == ("cache/once", "fine")


@pytest.mark.usefixtures("reruns")
@pytest.mark.parametrize(("every", "code"), [(1, "cache/useless"), (4, "cache/harmless")])
def test_a_slow_host_does_not_excuse_a_hot_loop(every: int, code: str) -> None:
    case = loop([100] * 16, seconds=0.0, every=every)
    case.trace.events.time_us[:] *= 10000
    (found,) = find(case)
    assert (found.code, found.severity) == (code, "problem" if every == 1 else "fine")


@pytest.mark.parametrize(("freed", "code"), [(0, "cache/gc-useless"), (50 * MIB, "cache/gc-useful")])
def test_garbage_collection_by_hand(freed: int, code: str) -> None:
    program = Program()
    program.add(ALLOC, 0, 100 * MIB)
    calls = tuple(
        CacheCall("gc.collect", SITE, 100_000 * i, 0.01, 0, i, 100 * MIB, 100 * MIB - freed, 0, 0)
        for i in range(5)
    )
    (found,) = find(Case(program.trace({"calls": calls})))
    assert (found.code, found.bytes, found.where) == (code, 5 * freed, SITE)
    assert found.severity == ("notice" if freed else "problem")


@pytest.mark.torch
def test_the_loop_of_an_h200_gains_nothing_by_emptying(data: Path) -> None:
    """resnet18 with empty_cache() in every step; on the card the peak is the same without (measured.jsonl)."""
    trace = load_trace(data / "h200/empty_cache_loop.record.pickle.xz")
    (found,) = find(Case(trace))
    assert (found.code, found.severity) == ("cache/useless", "problem")
    again = rerun(trace)
    assert again is not None
    assert again.without_bytes <= again.as_it_was_bytes
    assert again.without_calls < again.as_it_was_calls / 10
