"""What emptying the cache after every step, every tenth or never would cost: peak by replay, time by a model of a step."""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from hotbed.errors import TraceError, UsageError
from hotbed.findings.case import Case
from hotbed.findings.step_times import Driver, StepTimes, observe, step_times
from hotbed.replaying import Op, Program, Replayer, compile_trace, gpu_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.replaying import Outcome
    from hotbed.trace import Trace

SCHEMA: Final = 1
_LEAST_STEPS: Final = 4
_ENOUGH_CALLS: Final = 4


@dataclass(frozen=True)
class Point:
    """One cadence: a call after every `every` steps, 0 for none. Milliseconds a settled step: it lies between
    `step_low_ms` and `step_high_ms`, and `step_ms` is likely; None where the recording does not tell. `driver_ms` is the
    part of it in calls that take memory from the driver and give it back."""

    every: int
    step_ms: float | None
    step_low_ms: float | None
    step_high_ms: float | None
    driver_ms: float
    peak_reserved_bytes: int
    driver_calls_per_step: float


@dataclass(frozen=True)
class Curve:
    """The points, and what they rest on.

    `recorded_calls`: whether recorded steps emptied the cache. Then, in milliseconds: `wait_ms` for the device in a call,
    `returning_ms` and `taking_ms` of memory in a step with one, `host_ms` of a step without these, and the most that the
    device's part of a step can be (`device_ms`); else None. `bound` says which of the two a step waits for.
    """

    points: tuple[Point, ...]
    steps: int
    bound: Literal["host", "device", "unknown"]
    host_ms: float | None
    device_ms: float | None
    wait_ms: float | None
    returning_ms: float | None
    taking_ms: float | None
    recorded_calls: bool
    costs_of: str

    def to_json(self) -> dict[str, Any]:
        """Plain containers, schema 1."""
        return {"schema": SCHEMA, **asdict(self)}


def cadences(trace: Trace, every: Sequence[int] = (1, 10, 0), *, python: str | None = None) -> Curve:
    """Replays `trace` with a call after each so many steps in place of its own calls; what was recorded gives the times.

    Raises TraceError where the trace has no steps that can be told apart, TorchError without a torch to replay with.
    """
    if any(number < 0 for number in every):
        raise UsageError(
            "a cadence is a number of steps", hint="1: after every step, 10: every tenth, 0: never"
        )
    program = compile_trace(trace)
    if len(program.steps) < _LEAST_STEPS:
        raise TraceError(
            f"{trace.source}: steps cannot be told apart, so that there is no end of a step to empty the cache at",
            hint="record with hotbed record, which sees the steps",
        )
    seen = observe(Case(trace))
    wanted = dict.fromkeys([*every, 1, 0, *([seen.every] if seen else [])])
    with Replayer(gpu_for(None, program), python=python) as replayer:
        pending = {
            number: replayer.submit(trace, with_cadence(program, number), trace.settings) for number in wanted
        }
        outcomes = {number: wait() for number, wait in pending.items()}
        costs_of = replayer.costs.source
    times = None if seen is None else step_times(seen, _driver(seen.every, outcomes))
    called = seen if seen is not None and seen.every else None
    return Curve(
        points=tuple(_point(number, outcomes, times) for number in every),
        steps=len(program.steps),
        bound="unknown" if times is None else times.bound,
        host_ms=None if called is None else called.host,
        device_ms=None if called is None else called.device_most,
        wait_ms=None if called is None else called.wait,
        returning_ms=None if called is None else called.driver.returning,
        taking_ms=None if called is None else called.driver.taking,
        recorded_calls=called is not None,
        costs_of=costs_of,
    )


def with_cadence(program: Program, every: int) -> Program:
    """`program` with a call of empty_cache() at the end of every `every`-th step (0: none) instead of its own calls."""
    ends = {
        start for number, start in enumerate(program.steps.starts[1:], 1) if every and number % every == 0
    }
    names = ("op", "allocation", "size", "stream", "pool", "event")
    old: dict[str, array[int]] = {name: getattr(program, name) for name in names}
    new: dict[str, array[int]] = {name: array(column.typecode) for name, column in old.items()}
    starts, wanted = [], set(program.steps.starts)
    for index in range(len(program)):
        if index in wanted:
            starts.append(len(new["op"]))
        if index in ends:
            for name, column in new.items():
                column.append({"op": int(Op.EMPTY_CACHE), "event": program.event[index]}.get(name, 0))
        if old["op"][index] == Op.EMPTY_CACHE and program.event[index] >= 0:
            continue
        for name, column in new.items():
            column.append(old[name][index])
    columns: dict[str, Any] = dict(new)
    return replace(program, **columns, steps=replace(program.steps, starts=tuple(starts)))


def _point(every: int, outcomes: dict[int, Outcome], times: StepTimes | None) -> Point:
    outcome = outcomes[every]
    driver_ms, span = outcome.cost.per_step_ms, None
    if times is not None:
        span = times.step(every, _driver(every, outcomes))
        returning = outcome.cost.returning_per_step_ms
        driver_ms = times.scaled(Driver(driver_ms - returning, returning)).total
    return Point(
        every,
        None if span is None else span.likely,
        None if span is None else span.low,
        None if span is None else span.high,
        driver_ms,
        outcome.peak_reserved_bytes,
        outcome.cost.per_step_calls,
    )


def _driver(every: int, outcomes: dict[int, Outcome]) -> Driver:
    """What the driver's calls cost in a step with a call of empty_cache(), by the calibration; for 0: in any step."""
    outcome = outcomes[every]
    # Few calls in the settled steps say less than those of a call at each step.
    if every and outcome.cost.steps < _ENOUGH_CALLS * every:
        outcome, every = outcomes[1], 1
    calls = every or 1
    returning = calls * outcome.cost.returning_per_step_ms
    return Driver(calls * outcome.cost.per_step_ms - returning, returning)
