"""Picks one configuration by a goal, with a margin on its cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.errors import HotbedError, UsageError
from hotbed.tuning.margins import Settled, Variants, settle
from hotbed.tuning.search import Limits
from hotbed.units import format_size

if TYPE_CHECKING:
    from hotbed.replaying import Steps
    from hotbed.tuning.evaluator import Evaluation, Evaluator

GOALS = ("memory", "balanced", "speed")
_BALANCED_SHARE = 0.01
_ASSUMED_STEP_MS = 100.0
"""stands in for the step time of a trace without times"""
_SETTLED_CANDIDATES = 4
# A cap can run out of memory where no cap cannot; it must save at least this share to be worth that.
_CAP_WORTH = 0.005
_SAME_FOOTPRINT = 0.003


@dataclass(frozen=True)
class Chosen:
    """The choice by the goal, the best one without a cap, and the margin's evidence (None without a cap)."""

    recommended: Evaluation
    without_cap: Evaluation
    settled: Settled | None


def limits_for(goal: str, steps: Steps, default: Evaluation) -> Limits:
    """What `goal` lets a step cost. `balanced`: 1 % of the recorded step, or what the default costs already."""
    if goal not in GOALS:
        raise UsageError(f"goal {goal!r} is unknown", hint="goals are " + ", ".join(GOALS))
    if goal == "memory":
        return Limits()
    spent = default.choice.cost_ms_per_step
    if goal == "speed":
        return Limits(spent)
    return Limits(max(_BALANCED_SHARE * (steps.step_ms or _ASSUMED_STEP_MS), spent))


def choose(evaluator: Evaluator, limits: Limits, default: Evaluation, *, with_margin: bool = True) -> Chosen:
    """The smallest footprint within `limits`, margin included; the default where nothing beats it.

    Raises HotbedError when nothing that was tried fits the card.
    """
    accepted = [known for known in evaluator.fitting() if limits.accept(known)]
    without_cap = _best_without_cap(evaluator, default, accepted)
    if not with_margin:
        return Chosen(without_cap, without_cap, None)
    settled = _best_settled(evaluator, limits, accepted)
    if settled is None:
        return Chosen(without_cap, without_cap, None)
    capped = evaluator.evaluate(settled.candidate)
    worth = (1 - _CAP_WORTH) * without_cap.choice.footprint_bytes
    if capped.choice.footprint_bytes > worth:
        return Chosen(without_cap, without_cap, None)
    return Chosen(capped, without_cap, settled)


def _best_without_cap(evaluator: Evaluator, default: Evaluation, accepted: list[Evaluation]) -> Evaluation:
    """Within the limits if possible; the default, which may spend what it spends, belongs to them."""
    for group in (accepted, evaluator.fitting()):
        uncapped = [known for known in group if known.candidate.cap_bytes is None]
        if uncapped or default.fits:
            return _cheapest_of_the_smallest([*uncapped, *([default] if default.fits else [])])
    raise HotbedError(
        f"nothing that was tried fits a {evaluator.replayer.gpu.name}: {format_size(evaluator.lower_bound_bytes)} are "
        f"alive at once, the card has {format_size(evaluator.largest_cap_bytes)} beside the CUDA context",
        hint="choose a larger --gpu, or record with a smaller batch",
    )


def _rank(evaluation: Evaluation) -> tuple[int, float, int]:
    choice = evaluation.choice
    return choice.footprint_bytes, choice.cost_ms_total, len(choice.settings)


def _best_settled(evaluator: Evaluator, limits: Limits, accepted: list[Evaluation]) -> Settled | None:
    """Of the smallest caps, one per settings, the one that is smallest with its margin and still affordable."""
    smallest: dict[str, Evaluation] = {}
    for evaluation in sorted(accepted, key=_rank):
        if evaluation.candidate.cap_bytes is not None:
            smallest.setdefault(evaluation.choice.settings, evaluation)
    variants = Variants(evaluator.subjects)
    settled = [
        settle(evaluator, known.candidate, variants)
        for known in list(smallest.values())[:_SETTLED_CANDIDATES]
    ]
    by_candidate = {found.candidate: found for found in settled if found is not None}
    affordable = [known for known in evaluator.evaluate_all(list(by_candidate)) if limits.accept(known)]
    return by_candidate[_cheapest_of_the_smallest(affordable).candidate] if affordable else None


def _cheapest_of_the_smallest(evaluations: list[Evaluation]) -> Evaluation:
    """The smallest footprint; of those hardly larger the cheapest, since a few MiB are not worth a millisecond."""
    enough = (1 + _SAME_FOOTPRINT) * min(known.choice.footprint_bytes for known in evaluations)
    small = [known for known in evaluations if known.choice.footprint_bytes <= enough]
    return min(small, key=lambda known: (known.choice.cost_ms_per_step, *_rank(known)))
