"""What emptying the cache at other cadences would cost: by replay of recordings of an H200."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import TraceError, UsageError
from hotbed.findings.cadence import cadences, with_cadence
from hotbed.replaying import Op, compile_trace
from hotbed.trace import load_trace
from hotbed.units import MIB

if TYPE_CHECKING:
    from hotbed.trace import Trace

H200 = Path(__file__).parents[2] / "data" / "h200"


@pytest.fixture(scope="module")
def loop() -> Trace:
    """resnet18, which empties the cache after each of eight steps."""
    return load_trace(H200 / "empty_cache_loop.record.pickle.xz")


def test_calls_stand_at_the_ends_of_steps_and_replace_those_of_the_program(loop: Trace) -> None:
    program = compile_trace(loop)
    for every, calls in ((1, 7), (3, 2), (0, 0)):
        other = with_cadence(program, every)
        own = [index for index, op in enumerate(other.op) if op == Op.EMPTY_CACHE and other.event[index] >= 0]
        assert len(own) == calls
        assert len(other.steps) == len(program.steps)
        assert set(own) <= {start - 1 for start in other.steps.starts} | set(other.steps.starts)


def test_a_loop_that_empties_its_cache_would_be_faster_without_at_the_same_peak(loop: Trace) -> None:
    always, tenth, never = cadences(loop).points
    assert always.step_ms is not None
    assert tenth.step_ms is not None
    assert never.step_ms is not None
    assert always.step_ms > tenth.step_ms > never.step_ms
    # 31 segments come and go in each step of the recording.
    assert always.driver_calls_per_step == pytest.approx(62, abs=3)
    assert never.driver_calls_per_step == 0
    assert never.peak_reserved_bytes == pytest.approx(always.peak_reserved_bytes, rel=0.02)


def test_with_sizes_that_vary_never_costs_memory() -> None:
    curve = cadences(load_trace(H200 / "bert_varlen.record.pickle.xz"), (1, 0))
    assert curve.points[1].peak_reserved_bytes > curve.points[0].peak_reserved_bytes + 1000 * MIB
    assert not curve.recorded_calls


def test_without_recorded_calls_the_time_of_a_step_with_one_is_a_range() -> None:
    always, tenth, never = cadences(load_trace(H200 / "bert_varlen.record.pickle.xz"), (1, 10, 0)).points
    assert never.step_ms is not None
    assert never.step_ms == never.step_low_ms == never.step_high_ms
    assert always.step_ms is None
    assert tenth.step_ms is None
    assert always.step_low_ms is not None
    assert always.step_high_ms is not None
    # At best a call waits for nothing, at worst as long as a step.
    assert never.step_ms < always.step_low_ms < always.step_high_ms - never.step_ms


def test_what_has_no_steps_or_cadence_is_refused(loop: Trace) -> None:
    with pytest.raises(UsageError, match="number of steps"):
        cadences(loop, (-1,))
    with pytest.raises(TraceError, match="steps cannot be told apart"):
        cadences(load_trace(H200 / "kv_serving.record.pickle.xz"))
