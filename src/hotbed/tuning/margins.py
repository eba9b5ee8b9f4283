"""How far above the smallest workable cap a cap must be: other runs are replayed, some to set it, some to test it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hotbed.tuning.bounds import lower_bound
from hotbed.tuning.recommendation import HeldOut, Margin
from hotbed.tuning.search import CAP_STEP_BYTES, rounded_up
from hotbed.tuning.variants import can_reorder, first_part, reordered, with_timing

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


class Variants:
    """Other runs of the subjects, made once: some to set margins by, some held out to test them."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self.fitting = _variants(subjects, _FIT_SEEDS, with_addresses=True)
        self.held_out = _variants(subjects, _HELD_OUT_SEEDS, with_addresses=False)
        single = len(subjects) == 1
        self.first_part = first_part(subjects[0].program, _FIT_SHARE) if single else None


@dataclass(frozen=True)
class Settled:
    """A candidate whose cap carries its margin, the margin's parts, and the test on held-out runs."""

    candidate: Candidate
    margin: Margin
    held_out: HeldOut


def settle(evaluator: Evaluator, candidate: Candidate, variants: Variants) -> Settled | None:
    """`candidate` with a margin on its cap; None if no reasonable margin makes the other runs fit."""
    assert candidate.cap_bytes is not None
    needed = candidate.cap_bytes
    caps = _caps_that_fit(evaluator, variants.fitting, candidate)
    if any(cap is None for cap in caps):
        return None
    worst = max((cap for cap in caps if cap is not None), default=needed)
    part = _fit_on_part(evaluator, candidate, variants)
    growth = part.growth_bytes if part else 0
    margin = Margin(needed, worst - needed, growth, _guard(candidate), len(variants.fitting))
    with_margin = replace(candidate, cap_bytes=needed + margin.total_bytes)
    return _tested(evaluator, with_margin, margin, part, variants.held_out)


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


def _caps_that_fit(
    evaluator: Evaluator, variants: Sequence[Variant], candidate: Candidate
) -> list[int | None]:
    """For each variant the smallest cap from the candidate's on; most fit at once, so all are tried in parallel."""
    fits = _fits(evaluator, variants, candidate)
    return [
        candidate.cap_bytes if fit else _cap_that_fits(evaluator, variant, candidate)
        for variant, fit in zip(variants, fits, strict=True)
    ]


def _cap_that_fits(evaluator: Evaluator, variant: Variant, candidate: Candidate) -> int | None:
    """The smallest cap from the candidate's on, in growing steps, under which `variant` fits."""
    assert candidate.cap_bytes is not None
    limit = _largest_cap(evaluator)
    cap, step = candidate.cap_bytes, CAP_STEP_BYTES
    while cap <= limit:
        if _fits(evaluator, [variant], replace(candidate, cap_bytes=cap))[0]:
            return cap
        cap, step = cap + step, step * 2
    return None


def _largest_cap(evaluator: Evaluator) -> int:
    return min(int(_MAX_RAISE * evaluator.lower_bound_bytes), evaluator.largest_cap_bytes)


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
class _Fit:
    """What a fit on part of the recorded runs would have missed.

    `overhead_bytes` is the need of that part beyond its own lower bound, `growth_bytes` what the rest needs beyond
    that. Need beyond the bound is compared, not bytes: later steps may simply hold more, which no setting changes.
    """

    steps: int | None
    overhead_bytes: int
    growth_bytes: int
    traces: int = 0
    """how many traces were held out against the others"""
    traces_fitted: int = 0


def _fit_on_part(evaluator: Evaluator, candidate: Candidate, variants: Variants) -> _Fit | None:
    """The fit on the first two thirds of a single trace, or on all traces but one, for each one in turn."""
    part = variants.first_part
    if part is None:
        return _leave_one_out(evaluator, candidate)
    assert candidate.cap_bytes is not None
    subject = evaluator.subjects[0]
    overhead = _overhead(evaluator, part, candidate)
    if overhead is None:
        return None
    whole = candidate.cap_bytes - subject.lower_bound_bytes
    return _Fit(len(part.steps) or None, overhead, max(0, rounded_up(whole - overhead)))


def _leave_one_out(evaluator: Evaluator, candidate: Candidate) -> _Fit | None:
    overheads = [_overhead(evaluator, subject.program, candidate) for subject in evaluator.subjects]
    known = sorted(overhead for overhead in overheads if overhead is not None)
    if len(known) < len(overheads):
        return None
    guard = _guard(candidate)
    fitted = sum(overhead <= known[-2 if overhead == known[-1] else -1] + guard for overhead in known)
    return _Fit(None, known[-2], rounded_up(known[-1] - known[-2]), len(known), fitted)


def _overhead(evaluator: Evaluator, program: Program, candidate: Candidate) -> int | None:
    """Smallest cap for `program` minus its lower bound."""
    bound = lower_bound(program)
    cap = _cap_that_fits(evaluator, Variant(program), replace(candidate, cap_bytes=rounded_up(bound)))
    return None if cap is None else cap - bound


def _guard(candidate: Candidate) -> int:
    assert candidate.cap_bytes is not None
    return rounded_up(max(2 * CAP_STEP_BYTES, int(candidate.cap_bytes * _GUARD_SHARE)))


def _tested(
    evaluator: Evaluator, candidate: Candidate, margin: Margin, part: _Fit | None, held_out: Sequence[Variant]
) -> Settled | None:
    """Replays held-out runs under the final cap, and raises it until they and the recorded runs fit."""
    assert candidate.cap_bytes is not None
    start = candidate.cap_bytes
    if start > _largest_cap(evaluator):
        return None
    caps = _caps_that_fit(evaluator, held_out, candidate)
    if any(cap is None for cap in caps):
        return None
    cap = max([start, *(cap for cap in caps if cap is not None)])
    while not evaluator.evaluate(replace(candidate, cap_bytes=cap)).fits:
        cap += CAP_STEP_BYTES
        if cap > _largest_cap(evaluator):
            return None
    final = replace(candidate, cap_bytes=cap)
    guard = margin.guard_bytes
    single = part is not None and not part.traces
    fit_cap = (
        rounded_up(evaluator.lower_bound_bytes + part.overhead_bytes) + guard if part and single else None
    )
    tested = HeldOut(
        kind=_kind(evaluator.subjects),
        runs=len(held_out) + (part.traces if part else 0),
        fitted=caps.count(start) + (part.traces_fitted if part else 0),
        worst_peak_reserved_bytes=_worst_peak(evaluator, held_out, final),
        raised_bytes=cap - start,
        fit_steps=part.steps if part else None,
        fit_cap_bytes=fit_cap,
        fit_cap_held=None if fit_cap is None else _holds(evaluator, final, fit_cap),
    )
    return Settled(final, replace(margin, guard_bytes=guard + cap - start), tested)


def _holds(evaluator: Evaluator, candidate: Candidate, cap_bytes: int) -> bool:
    cap = min(cap_bytes, evaluator.largest_cap_bytes)
    return evaluator.evaluate(replace(candidate, cap_bytes=cap)).fits


def _kind(subjects: Sequence[Subject]) -> str:
    kinds = []
    if any(can_reorder(subject.program) for subject in subjects):
        kinds.append("steps in another order")
    if any(subject.program.has_pending_frees for subject in subjects):
        kinds.append("side streams at other times")
    if len(subjects) > 1:
        kinds.append("each trace by a fit on the others")
    return ", ".join(kinds) or "none: the trace shows neither steps that could change places nor side streams"


def _worst_peak(evaluator: Evaluator, variants: Sequence[Variant], candidate: Candidate) -> int:
    work = [(variant.program, candidate) for variant in variants]
    return max((outcome.peak_reserved_bytes for outcome in evaluator.outcomes(work, "driver")), default=0)
