"""Evaluates candidates by replay: all traces, in parallel, each candidate once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.errors import InternalError
from hotbed.tuning.bounds import lower_bound
from hotbed.tuning.recommendation import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hotbed.replaying import Outcome, Program, Replayer
    from hotbed.trace import Trace
    from hotbed.tuning.space import Candidate

    Progress = Callable[["Evaluator"], None]


@dataclass(frozen=True)
class Subject:
    """A trace to tune for, compiled, with the least memory it can do with."""

    trace: Trace
    program: Program
    lower_bound_bytes: int

    @classmethod
    def of(cls, trace: Trace, program: Program) -> Subject:
        return cls(trace, program, lower_bound(program))


@dataclass(frozen=True)
class Evaluation:
    """A candidate and what it did."""

    candidate: Candidate
    choice: Choice

    @property
    def fits(self) -> bool:
        return self.choice.fits


class Evaluator:
    """Replays candidates on every subject; remembers them. `on_progress` is called after each batch."""

    def __init__(
        self, subjects: Sequence[Subject], replayer: Replayer, on_progress: Progress | None = None
    ) -> None:
        self.subjects = tuple(subjects)
        self.replayer = replayer
        self.replays = 0
        self.expected_replays = 0
        """an estimate for progress bars, kept by whoever decides what to replay next"""
        self.known: dict[Candidate, Evaluation] = {}
        self._on_progress = on_progress

    @property
    def lower_bound_bytes(self) -> int:
        return max(subject.lower_bound_bytes for subject in self.subjects)

    @property
    def largest_cap_bytes(self) -> int:
        """What the card has beside the CUDA context."""
        gpu = self.replayer.gpu
        return gpu.total_bytes - (gpu.context_bytes or 0)

    @property
    def parallel(self) -> int:
        return self.replayer.engine.parallel

    def evaluate(self, candidate: Candidate) -> Evaluation:
        return self.evaluate_all([candidate])[0]

    def evaluate_all(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """One evaluation per candidate, in their order; new ones are replayed in parallel.

        Each is remembered as soon as it is known: an interrupt loses only what had not ended.
        """
        new = [candidate for candidate in dict.fromkeys(candidates) if candidate not in self.known]
        programs = [subject.program for subject in self.subjects]
        pending = [
            (candidate, [self._start(program, candidate) for program in programs]) for candidate in new
        ]
        for candidate, results in pending:
            self.known[candidate] = _judged(candidate, [result() for result in results])
            self.replays += len(results)
            if self._on_progress:
                self._on_progress(self)
        return [self.known[candidate] for candidate in candidates]

    def outcomes(
        self, work: Iterable[tuple[Program, Candidate]], addresses: str = "recorded"
    ) -> list[Outcome]:
        """Replays each program under its candidate, in parallel, without remembering."""
        pending = [self._start(program, candidate, addresses) for program, candidate in work]
        found = [result() for result in pending]
        self.replays += len(found)
        return found

    def _start(
        self, program: Program, candidate: Candidate, addresses: str = "recorded"
    ) -> Callable[[], Outcome]:
        trace = self.subjects[0].trace
        settings = candidate.settings.to_string()
        return self.replayer.submit(trace, program, settings, candidate.cap_bytes, addresses)

    def fitting(self) -> list[Evaluation]:
        """Everything evaluated so far that fits."""
        return [evaluation for evaluation in self.known.values() if evaluation.fits]


def _judged(candidate: Candidate, outcomes: Sequence[Outcome]) -> Evaluation:
    if not outcomes:
        raise InternalError("a candidate was judged without a replay")
    fits = not any(outcome.out_of_memory for outcome in outcomes)
    choice = Choice(
        settings=candidate.settings.to_string(),
        cap_bytes=candidate.cap_bytes,
        peak_reserved_bytes=max(outcome.peak_reserved_bytes for outcome in outcomes),
        device_calls=max(outcome.cost.device_calls for outcome in outcomes),
        cost_ms_per_step=max(outcome.cost.per_step_ms for outcome in outcomes),
        cost_ms_total=max(outcome.cost.total_ms for outcome in outcomes),
        fits=fits,
    )
    return Evaluation(candidate, choice)
