"""How long a step takes with and without a call of empty_cache(), from the times in a recording.

A step takes the longer of two times that run side by side: the host's (H), which ends when the last kernel is handed over,
and the device's (G). A call makes the host wait for the device (W), then memory is given back (F) while the device idles;
in the step after it the host takes memory anew (M), between kernels. So a step without a call takes max(H, G), one with a
call max(H + M + W, G + S) + F, where S is the host's time up to its first request of memory: until then nothing is
on its way to the device.

Recorded calls show W, F and M themselves. cudaMalloc between kernels takes longer than in the bursts of a calibration (125
instead of 61 us on an H200), so the calibration then only says by how much another cadence has more or larger calls. How long
the device is at work is not in a recording: only that it had finished when the call's wait was over. Without recorded
calls nothing is known of it but that it took no longer than the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.findings.case import Case

_LEAST_STEPS: Final = 4
_LEAST_CALLS: Final = 3
_WAITS: Final = 0.10
"""A call that waits for more than this part of the host's time is taken for one of a step that waits for the device; a
shorter wait is what the last kernels take."""
_GIVEN: Final = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
_TAKEN: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_AT_THE_START: Final = 4
"""A call at the end of a step stands among the first entries of the next: the step ends with its last free."""


@dataclass(frozen=True)
class Driver:
    """Milliseconds in calls that take memory (M) and that give it back (F)."""

    taking: float
    returning: float

    @property
    def total(self) -> float:
        """Both."""
        return self.taking + self.returning


@dataclass(frozen=True)
class Span:
    """Milliseconds of a step; `likely` is None where nothing between `low` and `high` is likelier than the rest."""

    likely: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Observed:
    """Means over the settled steps of a recording, milliseconds. `every`: how rarely they empty the cache, 0 for never.
    `length` is of a whole step, the rest of one with a call: `host` is H, `wait` W, `started` S, `driver` M and F."""

    every: int
    length: float
    host: float
    wait: float
    started: float
    driver: Driver

    @property
    def device_most(self) -> float:
        """The most that G can be: at work from the first request up to the end of the wait."""
        return max(self.host + self.driver.taking + self.wait - self.started, 0.0)


@dataclass(frozen=True)
class StepTimes:
    """The model of a step. `taking` and `returning`: by how much the recorded calls took longer than the calibration says."""

    seen: Observed
    taking: float = 1.0
    returning: float = 1.0

    @property
    def bound(self) -> Literal["host", "device", "unknown"]:
        """Which of the two a step without a call waits for."""
        if not self.seen.every:
            return "unknown"
        return "device" if self._likely_device > self.seen.host else "host"

    @property
    def _likely_device(self) -> float:
        return self.seen.device_most if self.seen.wait > _WAITS * self.seen.host else 0.0

    def scaled(self, driver: Driver) -> Driver:
        """Calibrated costs as they are in this program."""
        return Driver(self.taking * driver.taking, self.returning * driver.returning)

    def step(self, every: int, calibrated: Driver) -> Span:
        """With a call after every `every`-th step (0: none). `calibrated`: M and F of a step with a call."""
        driver = self.scaled(calibrated)
        if not self.seen.every:
            return self._unknown(every, driver)
        guesses = [
            self._step(every, driver, device) for device in (self._likely_device, 0.0, self.seen.device_most)
        ]
        return Span(guesses[0], min(guesses), max(guesses))

    def _step(self, every: int, driver: Driver, device: float) -> float:
        seen = self.seen
        if not every:
            return max(seen.host + driver.taking, device)
        without = max(seen.host, device)
        with_call = max(seen.host + driver.taking + seen.wait, device + seen.started) + driver.returning
        return without + (with_call - without) / every

    def _unknown(self, every: int, driver: Driver) -> Span:
        """At best the device has finished and the taking of memory hides behind it; at worst all its work, as long as a step, is
        still to do when the call begins, and nothing is hidden."""
        length = self.seen.length
        if not every:
            return Span(length, length, length)
        return Span(None, length + driver.returning / every, length + (length + driver.total) / every)


def step_times(seen: Observed, calibrated: Driver) -> StepTimes:
    """The model for a recording; `calibrated` is what M and F of its own cadence would be by the calibration."""
    if not seen.every:
        return StepTimes(seen)
    return StepTimes(
        seen,
        seen.driver.taking / calibrated.taking if calibrated.taking else 1.0,
        seen.driver.returning / calibrated.returning if calibrated.returning else 1.0,
    )


def observe(case: Case) -> Observed | None:
    """What the settled steps took, behind a quarter of them; None where the trace has no times, or too few steps."""
    stretches = _stretches(case)
    if not stretches:
        return None
    settled = stretches[len(stretches) // 4 :]
    calls = [one for one in settled if one.returned]
    length = _mean([one.length for one in settled])
    if len(calls) < _LEAST_CALLS:
        return Observed(0, length, length, 0.0, 0.0, Driver(0.0, 0.0))
    each = _taking_each(case.trace.events.time_us, case.trace.events.action, calls)
    # Over all steps: what is done between the last entry of one and the first of the next may count for either.
    return Observed(
        every=round(len(settled) / len(calls)),
        length=length,
        host=max(_mean([one.length - one.wait - one.returned - one.taken * each for one in settled]), 0.0),
        wait=_mean([one.wait for one in calls]),
        started=_mean([one.started for one in calls]),
        driver=Driver(_mean([one.taken * each for one in calls]), _mean([one.returned for one in calls])),
    )


@dataclass(frozen=True)
class _Stretch:
    """From one step to the next, the events from `first` to `end`; milliseconds. `returned`: in releases of memory, without
    the `wait` for the device; `started`: up to the first request; `taken`: how often memory was taken from the driver."""

    first: int
    end: int
    length: float
    returned: float
    wait: float
    started: float
    taken: int


def _stretches(case: Case) -> list[_Stretch]:
    events = case.trace.events
    starts = [step.first_event for step in case.train_steps if step.first_event is not None]
    if len(starts) < _LEAST_STEPS or not events.time_us.any():
        return []
    return [_stretch(events.time_us, events.action, first, end) for first, end in pairwise(starts)]


def _stretch(times: npt.NDArray[np.int64], action: npt.NDArray[np.uint8], first: int, end: int) -> _Stretch:
    given = np.flatnonzero(np.isin(action[first:end], _GIVEN)) + first
    returned, wait = _returned(times, given)
    made = np.flatnonzero(action[first:end] == Action.ALLOC) + first
    called = len(given) and given[0] - first < _AT_THE_START
    begun = int(times[given[-1]]) if called else int(times[first])
    return _Stretch(
        first=first,
        end=end,
        length=(int(times[end]) - int(times[first])) / 1000,
        returned=returned,
        wait=wait,
        started=max(int(times[made[0]]) - begun, 0) / 1000 if len(made) else 0.0,
        taken=int(np.isin(action[first:end], _TAKEN).sum()),
    )


def _returned(times: npt.NDArray[np.int64], given: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Milliseconds of a run of releases, and of the wait in it. torch notes a release before the driver carries it out, so
    that the wait lies behind the first one; how long the last takes is not noted."""
    if len(given) < 2:
        return 0.0, 0.0
    spans = np.diff(times[given]) / 1000
    one = float(np.median(spans))
    wait = max(float(spans[0]) - one, 0.0)
    return float(spans.sum()) + one - wait, wait


def _taking_each(
    times: npt.NDArray[np.int64], action: npt.NDArray[np.uint8], stretches: Sequence[_Stretch]
) -> float:
    """Milliseconds in which memory is taken from the driver once: torch notes it afterwards, so that the time since the last
    entry holds it, and the host's own work, which is seen in front of requests that need no memory of the driver. Medians,
    since some of that work is a batch being made or copied."""
    since = np.diff(times, prepend=times[:1])
    inside = np.zeros(len(times), np.bool_)
    for one in stretches:
        inside[one.first + 1 : one.end] = True
    grown = np.isin(action, _TAKEN)
    plain = (action == Action.ALLOC) & ~np.concatenate(([False], grown[:-1]))
    if not (inside & grown).any():
        return 0.0
    own = float(np.median(since[inside & plain])) if (inside & plain).any() else 0.0
    return max(float(np.median(since[inside & grown])) - own, 0.0) / 1000


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
