"""How far above the smallest workable cap a cap must be: other runs are replayed, some to set it, some to test it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hotbed.tuning.bounds import lower_bound
from hotbed.tuning.recommendation import HeldOut, Margin
from hotbed.tuning.search import CAP_STEP_BYTES, rounded_up
from hotbed.tuning.variants import can_reorder, first_steps, reordered, with_timing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.replaying import Program
    from hotbed.tuning.evaluator import Evaluator, Subject
    from hotbed.tuning.space import Candidate

_GUARD_SHARE = 0.0025
_FIT_SHARE = 2 / 3
_FIT_SEEDS = (1, 2, 3)
_HELD_OUT_SEEDS = (11, 12, 13, 14, 15)
_MAX_RAISE = 1.5
"""a cap that needs more than this times the lower bound for another run is no cap worth having"""


@dataclass(frozen=True)
class Variant:
    """Another run that the recorded one might have been: a program and the address rule to replay it with."""

    program: Program
    addresses: str = "recorded"


@dataclass(frozen=True)
class Settled:
    """A candidate whose cap carries its margin, the margin's parts, and the test on held-out runs."""

    candidate: Candidate
    margin: Margin
    held_out: HeldOut


def settle(evaluator: Evaluator, candidate: Candidate) -> Settled | None:
    """`candidate` with a margin on its cap; None if no reasonable margin makes the other runs fit."""
    assert candidate.cap_bytes is not None
    needed = candidate.cap_bytes
    fitting = _variants(evaluator.subjects, _FIT_SEEDS, with_addresses=True)
    caps = [_cap_that_fits(evaluator, variant, candidate) for variant in fitting]
    if any(cap is None for cap in caps):
        return None
    worst = max((cap for cap in caps if cap is not None), default=needed)
    part = _fit_on_first_part(evaluator, candidate)
    growth = part.growth_bytes if part else 0
    guard = rounded_up(max(2 * CAP_STEP_BYTES, int(needed * _GUARD_SHARE)))
    margin = Margin(needed, worst - needed, growth, guard, len(fitting))
    return _tested(evaluator, replace(candidate, cap_bytes=needed + margin.total_bytes), margin, part)


def _variants(subjects: Sequence[Subject], seeds: Sequence[int], *, with_addresses: bool) -> list[Variant]:
    """Variants of every subject: timings, orders of steps and, to set margins, other address rules."""
    variants = []
    for subject in subjects:
        program = subject.program
        if program.has_pending_frees:
            timings = [None, *seeds] if with_addresses else list(seeds)
            variants += [Variant(with_timing(program, seed)) for seed in timings]
        if can_reorder(program):
            variants += [_reordered(program, seed) for seed in seeds]
        if with_addresses:
            variants += [Variant(program, rule) for rule in ("driver", "ascending")]
    return variants


def _reordered(original: Program, seed: int) -> Variant:
    program = reordered(original, seed)
    if program.has_pending_frees:
        program = with_timing(program, seed)
    return Variant(program, "driver")


def _cap_that_fits(evaluator: Evaluator, variant: Variant, candidate: Candidate) -> int | None:
    """The smallest cap from the candidate's on, in growing steps, under which `variant` fits."""
    assert candidate.cap_bytes is not None
    limit = _MAX_RAISE * evaluator.lower_bound_bytes
    cap, step = candidate.cap_bytes, CAP_STEP_BYTES
    while cap <= limit:
        if _fits(evaluator, [variant], replace(candidate, cap_bytes=cap))[0]:
            return cap
        cap, step = cap + step, step * 2
    return None


def _fits(evaluator: Evaluator, variants: Sequence[Variant], candidate: Candidate) -> list[bool]:
    by_rule: dict[str, list[int]] = {}
    for index, variant in enumerate(variants):
        by_rule.setdefault(variant.addresses, []).append(index)
    fits = [False] * len(variants)
    for rule, indices in by_rule.items():
        outcomes = evaluator.outcomes([(variants[index].program, candidate) for index in indices], rule)
        for index, outcome in zip(indices, outcomes, strict=True):
            fits[index] = not outcome.out_of_memory
    return fits


@dataclass(frozen=True)
class _FirstPart:
    """What the first two thirds of the steps needed beyond their own lower bound, and what the rest added."""

    steps: int
    overhead_bytes: int
    growth_bytes: int


def _fit_on_first_part(evaluator: Evaluator, candidate: Candidate) -> _FirstPart | None:
    """Fits the cap on the first part alone. Need beyond the lower bound is compared, not bytes: a later step
    may simply hold more, which no setting changes."""
    subject = evaluator.subjects[0]
    steps = int(len(subject.program.steps) * _FIT_SHARE)
    if not can_reorder(subject.program) or len(evaluator.subjects) > 1:
        return None
    assert candidate.cap_bytes is not None
    part = first_steps(subject.program, steps)
    bound = lower_bound(part)
    start = replace(candidate, cap_bytes=rounded_up(bound))
    cap = _cap_that_fits(evaluator, Variant(part), start)
    if cap is None:
        return None
    overhead = cap - bound
    whole = candidate.cap_bytes - subject.lower_bound_bytes
    return _FirstPart(steps, overhead, max(0, rounded_up(whole - overhead)))


def _tested(
    evaluator: Evaluator, candidate: Candidate, margin: Margin, part: _FirstPart | None
) -> Settled | None:
    """Replays held-out runs under the final cap, and raises it until they and the recorded runs fit."""
    assert candidate.cap_bytes is not None
    start = candidate.cap_bytes
    held_out = _variants(evaluator.subjects, _HELD_OUT_SEEDS, with_addresses=False)
    fits = _fits(evaluator, held_out, candidate)
    raised = [
        _cap_that_fits(evaluator, variant, candidate)
        for variant, fit in zip(held_out, fits, strict=True)
        if not fit
    ]
    if any(cap is None for cap in raised):
        return None
    cap = max([start, *(cap for cap in raised if cap is not None)])
    while not evaluator.evaluate(replace(candidate, cap_bytes=cap)).fits:
        cap += CAP_STEP_BYTES
        if cap > _MAX_RAISE * evaluator.lower_bound_bytes:
            return None
    final = replace(candidate, cap_bytes=cap)
    guard = margin.guard_bytes
    fit_cap = rounded_up(evaluator.lower_bound_bytes + part.overhead_bytes) + guard if part else None
    tested = HeldOut(
        kind=_kind(evaluator.subjects),
        runs=len(held_out),
        fitted=sum(fits),
        worst_peak_reserved_bytes=_worst_peak(evaluator, held_out, final),
        raised_bytes=cap - start,
        fit_steps=part.steps if part else None,
        fit_cap_bytes=fit_cap,
        fit_cap_held=None if fit_cap is None else evaluator.evaluate(replace(final, cap_bytes=fit_cap)).fits,
    )
    return Settled(final, replace(margin, guard_bytes=guard + cap - start), tested)


def _kind(subjects: Sequence[Subject]) -> str:
    kinds = []
    if any(can_reorder(subject.program) for subject in subjects):
        kinds.append("steps in another order")
    if any(subject.program.has_pending_frees for subject in subjects):
        kinds.append("side streams at other times")
    return ", ".join(kinds) or "none: the trace shows neither steps nor side streams"


def _worst_peak(evaluator: Evaluator, variants: Sequence[Variant], candidate: Candidate) -> int:
    work = [(variant.program, candidate) for variant in variants]
    return max((outcome.peak_reserved_bytes for outcome in evaluator.outcomes(work, "driver")), default=0)
