"""hotbed.tune: traces in, Recommendation out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hotbed.errors import UsageError
from hotbed.replaying import Op, Replayer, compile_trace, gpu_for
from hotbed.settings import USES, AllocatorSettings, TorchVersion, known_keys
from hotbed.trace import Trace, load_trace
from hotbed.tuning.advice import judge
from hotbed.tuning.choosing import Chosen, choose, limits_for
from hotbed.tuning.evaluator import Evaluator, Subject
from hotbed.tuning.recommendation import Advice, Recommendation
from hotbed.tuning.search import Limits, pareto, search
from hotbed.tuning.space import Candidate, Space

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from os import PathLike

    from hotbed.gpu import Gpu
    from hotbed.tuning.evaluator import Evaluation

    TraceLike = Trace | str | PathLike[str]


def tune(
    traces: TraceLike | Sequence[TraceLike],
    goal: str = "balanced",
    *,
    gpu: str | Gpu | None = None,
    python: str | None = None,
    uses: Collection[str] = (),
    on_progress: Callable[[Evaluator], None] | None = None,
) -> Recommendation:
    """The allocator settings, and the cap, that suit `traces` best by `goal`.

    `goal`: "memory" (smallest footprint), "balanced" (smallest that costs at most 1 % of a step), "speed" (fewest
    driver calls' time that is no worse than the default's). `uses` names what rules settings out, as in
    `hotbed settings check --uses`. Ctrl-C ends the search; the best found by then is returned, marked
    `interrupted`. Raises TraceError, UsageError, TorchError.
    """
    started = time.perf_counter()
    many = list(traces) if isinstance(traces, (list, tuple)) else [cast("TraceLike", traces)]
    if not many:
        raise UsageError("nothing to tune: no trace was given", hint="hotbed tune snapshot.pickle")
    unknown = set(uses) - set(USES)
    if unknown:
        raise UsageError(
            f"unknown use {', '.join(sorted(unknown))}", hint="uses are " + ", ".join(sorted(USES))
        )
    subjects = [_subject(trace) for trace in many]
    with Replayer(gpu_for(gpu, subjects[0].program), python=python) as replayer:
        evaluator = Evaluator(subjects, replayer, on_progress)
        space = Space(TorchVersion.parse(replayer.engine.torch_version), frozenset(uses))
        run = _Run(evaluator, space, goal, python, card_is_named=gpu is not None)
        return run.recommendation(started)


def _subject(trace: TraceLike) -> Subject:
    loaded = trace if isinstance(trace, Trace) else load_trace(trace)
    program = compile_trace(loaded)
    if Op.ALLOC not in program.op[program.beginning :]:
        raise UsageError(
            f"{loaded.source} records no allocation to tune for",
            hint="call torch.cuda.memory._record_memory_history() before the steps that it should hold",
        )
    return Subject.of(loaded, program)


@dataclass(frozen=True)
class _Run:
    evaluator: Evaluator
    space: Space
    goal: str
    python: str | None
    card_is_named: bool

    def recommendation(self, started: float) -> Recommendation:
        evaluator = self.evaluator
        subject = evaluator.subjects[0]
        default = evaluator.evaluate(Candidate(AllocatorSettings()))
        limits = limits_for(self.goal, subject.program.steps, default)
        chosen, interrupted = self._search(limits, default)
        steps = subject.program.steps
        return Recommendation(
            sources=tuple(item.trace.source for item in evaluator.subjects),
            goal=self.goal,
            gpu=evaluator.replayer.gpu.name,
            total_bytes=evaluator.replayer.gpu.total_bytes,
            torch_version=evaluator.replayer.engine.torch_version,
            default=default.choice,
            lower_bound_bytes=evaluator.lower_bound_bytes,
            recommended=chosen.recommended.choice,
            margin=chosen.settled.margin if chosen.settled else None,
            without_cap=chosen.without_cap.choice,
            front=tuple(known.choice for known in pareto(evaluator.fitting())),
            held_out=chosen.settled.held_out if chosen.settled else None,
            advice=() if interrupted else self._advice(subject),
            steps=max(len(steps), 1),
            steps_source=steps.source,
            step_ms=steps.step_ms,
            budget_ms_per_step=limits.cost_ms_per_step,
            cost_source=evaluator.replayer.costs.source,
            replays=evaluator.replays,
            seconds=time.perf_counter() - started,
            interrupted=interrupted,
            environment_string=self._environment_string(chosen.recommended),
            python_line=_python_line(chosen.recommended.choice.cap_bytes),
            notes=tuple(dict.fromkeys(note for item in evaluator.subjects for note in item.program.notes)),
        )

    def _advice(self, subject: Subject) -> tuple[Advice, ...]:
        try:
            return judge(subject, self.evaluator.replayer, self.space, self.python)
        except KeyboardInterrupt:
            # The search is over and its answer complete; only this part of the evidence is given up.
            return ()

    def _environment_string(self, chosen: Evaluation) -> str:
        """The settings, and the cap where it can be said: as a fraction it holds for one card only."""
        settings, cap = chosen.candidate.settings, chosen.candidate.cap_bytes
        knows_fraction = "per_process_memory_fraction" in known_keys(self.space.version)
        if cap is not None and self.card_is_named and knows_fraction:
            # Rounded up: a limit slightly above the cap is harmless, one below it is not.
            fraction = math.ceil(cap / self.evaluator.replayer.gpu.total_bytes * 1e6) / 1e6
            settings = settings.replace(per_process_memory_fraction=fraction)
        return settings.to_string()

    def _search(self, limits: Limits, default: Evaluation) -> tuple[Chosen, bool]:
        try:
            search(self.evaluator, self.space, limits)
            return choose(self.evaluator, limits, default), False
        except KeyboardInterrupt:
            return choose(self.evaluator, limits, default, with_margin=False), True


def _python_line(cap_bytes: int | None) -> str:
    if cap_bytes is None:
        return ""
    total = "torch.cuda.get_device_properties(0).total_memory"
    return f"torch.cuda.set_per_process_memory_fraction({cap_bytes} / {total})"
