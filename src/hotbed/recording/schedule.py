"""When a recorder reads torch's history: wholly at first, later short windows of it that a budget pays for."""

from __future__ import annotations

from dataclasses import dataclass

ENTRY_S = 4e-6
"""what torch takes to hand out one entry of its history (measured: 3 to 4 us)"""
CLEAR_S = 0.4e-6
"""to drop one"""
_LEAST_S = 1e-3
_FIRST_STEPS = (1, 2, 4, 8)
_FIRST_PAUSE_S = 2.0
_FIRST_ENTRIES = 30_000
"""in the beginning so many are read at once"""
_PAUSE_S = 1.0
_SAMPLES = 1 / 4
"""part of the budget for looks at who holds what"""
_DETAILS = 1 / 12
"""part for the addresses of what optimizers step, and the counters at marks within steps"""
_LONG = 256
"""allocations from which on a stretch without steps is long"""
_SHARE = 200
"""A pause between readings is at least this part of the whole time: a run of days makes no endless file."""


@dataclass(frozen=True)
class Plan:
    """What may be read. `budget` is a part of the time, 0.01 for 1 %; `whole`: everything, whatever it costs.

    `first_steps` and `first_entries`: so much is read wholly before the budget counts. `every`: of each so many steps
    the last one is read, budget or not.
    """

    budget: float = 0.01
    whole: bool = False
    every: int | None = None
    first_steps: int = 10
    first_entries: int = 200_000
    ring_entries: int = 100_000


class LongStretch:
    """Says when to look within a stretch without steps: evaluation, or a program that has none.

    That is when it has made twice as many allocations as a step does, and again whenever they have doubled.
    """

    def __init__(self) -> None:
        self._begun = 0
        self._step = 0
        self._looked = 0

    def begins(self, made: int) -> None:
        """A step is over, after so many allocations in all."""
        self._step, self._begun, self._looked = made - self._begun, made, 0

    def is_due(self, made: int) -> bool:
        """Whether to look now, after so many allocations."""
        since = made - self._begun
        return since >= max(_LONG, 2 * self._step, 2 * self._looked)

    def looked(self, made: int) -> None:
        """That was done."""
        self._looked = made - self._begun


class Schedule:
    """Says at the end of each step, or of each tick of a program without steps, what to do now."""

    def __init__(self, plan: Plan, now: float) -> None:
        self._plan = plan
        self._begun = self._last = now
        self._settled: float | None = None
        """when the beginning was over"""
        self._base_s = _LEAST_S
        self._spent_s = 0.0
        self._sampled_s = 0.0
        self._sample_s = 0.0
        self._sample_due = False
        self._detailed_s = 0.0
        self._detail_s = 0.0
        """what they took in a step of late"""
        self._read = 0
        self._unit = 0
        self._before = 0
        self.state = "whole"
        """"whole": all that is in the ring will be read; "skip": it will not; "window": from the last clearing on"""

    def decide(self, now: float, pending: int, step: int | None) -> str | None:
        """ "read", "clear" or None. `pending`: entries in the ring; `step`: how many are complete, None within one."""
        self._unit, self._before = max(pending - self._before, 0), pending
        if self._plan.whole:
            return (
                "read"
                if pending > _FIRST_ENTRIES or (pending and now - self._last > _FIRST_PAUSE_S)
                else None
            )
        if self._beginning(now, step):
            return self._first(now, pending, step)
        if self._plan.every is not None and step is not None:
            return self._periodic(step)
        if self.state == "window":
            return "read"
        rested = now - self._last >= max(_PAUSE_S, (now - self._begun) / _SHARE)
        if self.state == "whole" and pending:
            if rested and self._affordable(now, pending):
                return "read"
            if pending > self._plan.ring_entries // 2 or not self._affordable(now + _PAUSE_S, pending):
                self.state = "skip"
        if self.state == "skip" and rested and self._affordable(now, self._unit, pending):
            return "clear"
        return None

    def urgent(self, now: float, pending: int) -> bool:
        """Whether to decide within a step: where everything is read, too much or too long ago."""
        if self._settled is not None and not self._plan.whole:
            return False
        return pending > _FIRST_ENTRIES or now - self._last > _FIRST_PAUSE_S

    @property
    def beginning(self) -> bool:
        """Whether the budget does not count yet."""
        return self._settled is None

    def was_read(self, now: float, seconds: float, entries: int) -> None:
        """A reading of `entries` took so long."""
        self._base_s = max(seconds - entries * ENTRY_S, _LEAST_S)
        self._read += entries
        self._last = now
        self._before = 0
        self.state = "whole"
        self._spend(seconds)

    def was_cleared(self, seconds: float) -> None:
        """The ring is empty; what comes now will be read."""
        self._before = 0
        self.state = "window"
        self._spend(seconds)

    def wants_sample(self, now: float, step: int) -> bool:
        """Whether to ask after `step` steps who holds what: after 2, 4, 8, ... of them, once that is paid for."""
        self._sample_due |= step >= 2 and not step & (step - 1)
        return self._sample_due and self.may_sample(now)

    def may_sample(self, now: float) -> bool:
        """Whether another look at who holds what is paid for."""
        if self._settled is None:
            return True
        earned = (now - self._settled) * self._plan.budget * _SAMPLES
        return self._sampled_s + self._sample_s <= earned

    def was_sampled(self, seconds: float) -> None:
        """A look at who holds what took so long."""
        self._sample_due, self._sample_s = False, seconds
        if self._settled is not None:
            self._sampled_s += seconds

    def wants_details(self, now: float) -> bool:
        """Whether to note addresses in the step that begins now: in one that is read for sure, else if that is paid for."""
        if self._settled is None or self._plan.whole or self.state == "window":
            return True
        earned = (now - self._settled) * self._plan.budget * _DETAILS
        return self._detailed_s + self._detail_s <= earned

    def were_detailed(self, seconds: float, *, noted: bool) -> None:
        """A step's marks, and its notes if they were `noted`, took so long."""
        if noted:
            self._detail_s = seconds
        if self._settled is not None:
            self._detailed_s += seconds

    def _spend(self, seconds: float) -> None:
        if self._settled is not None:
            self._spent_s += seconds

    def _beginning(self, now: float, step: int | None) -> bool:
        if self._settled is None:
            over = self._read > self._plan.first_entries or (
                step is not None and step > self._plan.first_steps
            )
            if over:
                self._settled = now
        return self._settled is None

    def _first(self, now: float, pending: int, step: int | None) -> str | None:
        due = step in (*_FIRST_STEPS, self._plan.first_steps) or pending > _FIRST_ENTRIES
        pause = max(_FIRST_PAUSE_S, 20 * self._base_s)
        return "read" if due or (pending and now - self._last > pause) else None

    def _periodic(self, step: int) -> str | None:
        assert self._plan.every is not None
        if self.state == "window" or self._plan.every == 1:
            return "read"
        self.state = "skip"
        return "clear" if step % self._plan.every == self._plan.every - 1 else None

    def _affordable(self, now: float, entries: int, dropped: int = 0) -> bool:
        assert self._settled is not None
        earned = (now - self._settled) * self._plan.budget * (1 - _SAMPLES - _DETAILS)
        cost = self._base_s + entries * ENTRY_S + dropped * CLEAR_S
        return self._spent_s + cost <= earned
