"""What emptying the cache after every step, every tenth or never would cost: peak by replay, time by a model of a step.

A step takes the longer of two times that run side by side: the host's (H), which ends when the last kernel is handed over,
and the device's (G). empty_cache() makes the host wait for the device, then gives memory back (F) while the device idles;
afterwards the host takes memory anew (M) while the device works. So a step with a call takes max(H + M, G') + F, where G'
is G and the host's time up to its first request of memory (S), and one without max(H, G).
"""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from hotbed.errors import TraceError, UsageError
from hotbed.findings.case import Case
from hotbed.replaying import Op, Program, Replayer, compile_trace, gpu_for
from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.replaying import Outcome
    from hotbed.trace import Trace

SCHEMA: Final = 1
_LEAST_STEPS: Final = 4
_WAITS: Final = 0.10
"""A host that is faster than the step by more than this part of it waits for the device in the rest."""
_ENOUGH_CALLS: Final = 4
_GIVEN: Final = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


@dataclass(frozen=True)
class Point:
    """One cadence: a call after every `every` steps, 0 for none. Milliseconds a settled step; None where the trace has
    no times. `driver_ms` is the part of it in calls that take memory from the driver and give it back."""

    every: int
    step_ms: float | None
    driver_ms: float
    peak_reserved_bytes: int
    driver_calls_per_step: float


@dataclass(frozen=True)
class Curve:
    """The points, and what they rest on. `host_ms` and `device_ms` are H and G of a step as far as the recording tells;
    `bound` by which of them it is; `recorded_calls` whether the recorded steps emptied the cache themselves."""

    points: tuple[Point, ...]
    steps: int
    bound: Literal["host", "device", "unknown"]
    host_ms: float | None
    device_ms: float | None
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
    wanted = dict.fromkeys([*every, 1, 0])
    with Replayer(gpu_for(None, program), python=python) as replayer:
        pending = {
            number: replayer.submit(trace, with_cadence(program, number), trace.settings) for number in wanted
        }
        outcomes = {number: wait() for number, wait in pending.items()}
        costs_of = replayer.costs.source
    times = _times(Case(trace), outcomes[1], outcomes[0])
    return Curve(
        points=tuple(_point(number, outcomes, times) for number in every),
        steps=len(program.steps),
        bound="unknown" if times is None else times.bound,
        host_ms=None if times is None else times.host,
        device_ms=None if times is None else times.device,
        recorded_calls=times is not None and times.recorded_calls,
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


# --- times


@dataclass(frozen=True)
class _Times:
    """Milliseconds. `host` is H, `device` G, `started` S; `wait` how long a call waits for the device."""

    host: float
    device: float
    started: float
    wait: float
    recorded_calls: bool

    @property
    def bound(self) -> Literal["host", "device"]:
        return "device" if self.device > self.host else "host"

    def step(self, every: int, taking: float, returning: float) -> float:
        """Of which one in `every` has a call at its end (0: none). `taking` and `returning`: M and F of such a step."""
        without = max(self.host, self.device)
        if not every:
            return without
        with_call = max(self.host + taking + self.wait, self.device + self.started) + returning
        return without + (with_call - without) / every


def _point(every: int, outcomes: dict[int, Outcome], times: _Times | None) -> Point:
    outcome = outcomes[every]
    # Few calls in the settled steps say less than those of a call at each step.
    enough = every and outcome.cost.steps >= _ENOUGH_CALLS * every
    cost = outcome.cost if enough else outcomes[1].cost
    calls = every if enough else 1
    returning = calls * cost.returning_per_step_ms
    step = None if times is None else times.step(every, calls * cost.per_step_ms - returning, returning)
    return Point(
        every,
        step,
        outcome.cost.per_step_ms,
        outcome.peak_reserved_bytes,
        outcome.cost.per_step_calls,
    )


def _times(case: Case, with_calls: Outcome, without: Outcome) -> _Times | None:
    """What the settled steps of the recording took, taken apart; None where it has no times."""
    stretches = _stretches(case)
    if not stretches:
        return None
    settled = stretches[len(stretches) // 4 :]
    calls = [one for one in settled if one.emptied]
    if len(calls) > len(settled) / 2:
        return _with_calls(settled, with_calls)
    return _without_calls(stretches, settled, without)


def _with_calls(settled: list[_Stretch], outcome: Outcome) -> _Times:
    """The wait in front of the first cudaFree tells by how much the device is behind."""
    cost = outcome.cost
    taking = cost.per_step_ms - cost.returning_per_step_ms
    emptied = _mean([one.emptied for one in settled])
    wait = _mean([one.wait for one in settled])
    started = min(one.started for one in settled)
    host = max(_mean([one.length for one in settled]) - emptied - taking, 0.0)
    # A device that is behind at the end has been at work since the step's first request.
    device = host + taking + wait - started if wait > _WAITS * host else 0.0
    return _Times(host, device, started, wait, recorded_calls=True)


def _without_calls(stretches: list[_Stretch], settled: list[_Stretch], outcome: Outcome) -> _Times:
    """A host that does not wait for the device in its first steps, and does later, is the faster of the two."""
    whole = _mean([one.length for one in settled]) - outcome.cost.per_step_ms
    early = stretches[1 : max(len(stretches) // 4, 3)]
    fastest = min(one.length - one.driver for one in early)
    waits = fastest < (1 - _WAITS) * whole
    started = float(np.median([one.started for one in settled]))
    return _Times(fastest if waits else whole, whole if waits else 0.0, started, 0.0, recorded_calls=False)


@dataclass(frozen=True)
class _Stretch:
    """From one step to the next, milliseconds. `emptied`: in releases of memory; `wait`: the part of it that waits for the
    device; `started`: up to the first request; `driver`: in requests that made reserved memory grow."""

    length: float
    emptied: float
    wait: float
    started: float
    driver: float


def _stretches(case: Case) -> list[_Stretch]:
    events = case.trace.events
    times = events.time_us
    starts = [step.first_event for step in case.train_steps if step.first_event is not None]
    if len(starts) < _LEAST_STEPS or not times.any():
        return []
    return [_stretch(case, first, end) for first, end in pairwise(starts)]


def _stretch(case: Case, first: int, end: int) -> _Stretch:
    events = case.trace.events
    times, action = events.time_us, events.action
    given = np.flatnonzero(np.isin(action[first:end], _GIVEN)) + first
    emptied, wait = _emptied(times, given)
    made = np.flatnonzero(action[first:end] == Action.ALLOC) + first
    begun = int(times[given[-1]]) if len(given) and given[0] - first < 4 else int(times[first])
    grown = np.flatnonzero(action[first:end] == Action.SEGMENT_ALLOC) + first
    grown = grown[grown > 0]
    return _Stretch(
        length=(int(times[end]) - int(times[first])) / 1000,
        emptied=emptied,
        wait=wait,
        started=max(int(times[made[0]]) - begun, 0) / 1000 if len(made) else 0.0,
        driver=float((times[grown] - times[grown - 1]).sum()) / 1000,
    )


def _emptied(times: npt.NDArray[np.int64], given: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Milliseconds of a run of releases, and of the wait in it. torch notes a release before the driver carries it out, so
    that the wait lies behind the first one; how long the last takes is not noted."""
    if not len(given):
        return 0.0, 0.0
    spans = np.diff(times[given]) / 1000
    if not len(spans):
        return 0.0, 0.0
    one = float(np.median(spans))
    wait = max(float(spans[0]) - one, 0.0)
    return float(spans.sum()) + one, wait


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
