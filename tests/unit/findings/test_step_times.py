"""How long a step takes with and without a call of empty_cache(), from the times of a program played by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hotbed.findings.case import Case
from hotbed.findings.step_times import Driver, observe, step_times
from tests.unit.findings.traces import Program
from tests.unit.invented import ALLOC, DONE, GROW, MIB, REQUEST, SHRINK

if TYPE_CHECKING:
    from hotbed.findings.step_times import Observed

STEPS, SEGMENTS = 16, 5


def played(
    every: int, *, batch: int = 20_000, wait: int = 3_000, free: int = 100, malloc: int = 130
) -> Observed:
    """A program whose host takes 100 us between entries and `batch` for a batch; microseconds."""
    program, spans = Program(), []

    def add(action: object, segment: int, us: int) -> None:
        program.add(action, segment << 32, 20 * MIB)  # type: ignore[arg-type]
        spans.append(us)

    for number in range(STEPS):
        begun, called = len(spans), bool(every and number and number % every == 0)
        if called:
            for segment in range(SEGMENTS):
                add(SHRINK, segment, 10 if segment == 0 else free + wait * (segment == 1))
        for segment in range(SEGMENTS):
            before = 100 + batch * (segment == 0) + (free if called and segment == 0 else 0)
            if called or number == 0:
                add(GROW, segment, before + malloc)
            add(ALLOC, segment, 0 if called or number == 0 else before)
            add(ALLOC, segment + 100, 100)
        for segment in (*range(SEGMENTS), *range(100, 100 + SEGMENTS)):
            add(REQUEST, segment, 100)
            add(DONE, segment, 0)
        program.step(begun)
    trace = program.trace()
    seen = observe(
        Case(replace(trace, events=replace(trace.events, time_us=np.cumsum(spans, dtype=np.int64))))
    )
    assert seen is not None
    return seen


@pytest.mark.parametrize("every", [1, 3])
def test_recorded_calls_show_the_wait_and_what_the_driver_takes(every: int) -> None:
    seen = played(every)
    assert seen.every == every
    assert seen.wait == pytest.approx(3.0)
    assert seen.driver.returning == pytest.approx(SEGMENTS * 0.1)
    assert seen.driver.taking == pytest.approx(SEGMENTS * 0.13, rel=0.2)
    # 20 requests and frees of 100 us, and the batch.
    assert seen.host == pytest.approx(22.0, rel=0.02)


def test_the_recorded_cadence_takes_what_was_recorded_and_never_takes_the_host_alone() -> None:
    seen = played(1, wait=1_000)
    times = step_times(seen, Driver(0.3, 0.4))
    assert times.bound == "host"
    always, never = times.step(1, Driver(0.3, 0.4)), times.step(0, Driver(0.0, 0.0))
    assert always.likely == pytest.approx(seen.length)
    assert never.likely == pytest.approx(seen.host)
    # A tenth of the calls that are twice as dear.
    tenth = times.step(10, Driver(0.6, 0.8))
    dearer = seen.wait + 2 * seen.driver.total
    assert tenth.likely == pytest.approx(seen.host + dearer / 10, rel=0.001)


def test_a_device_that_is_far_behind_is_what_a_step_waits_for() -> None:
    seen = played(1, batch=0, wait=30_000)
    times = step_times(seen, Driver(0.3, 0.4))
    assert times.bound == "device"
    never = times.step(0, Driver(0.0, 0.0))
    assert never.likely == never.high == pytest.approx(seen.device_most)
    # It may as well have got all its work at the end of the step.
    assert never.low == pytest.approx(seen.host)


def test_without_calls_the_wait_may_be_nothing_or_as_long_as_a_step() -> None:
    seen = played(0)
    times = step_times(seen, Driver(0.3, 0.4))
    assert times.bound == "unknown"
    span = times.step(1, Driver(0.3, 0.4))
    assert (span.likely, span.low, span.high) == (
        None, pytest.approx(seen.length + 0.4), pytest.approx(2 * seen.length + 0.7)
    )  # fmt: skip
    assert times.step(0, Driver(0.0, 0.0)).likely == seen.length
