"""The search itself: a grid without caps, then the smallest cap for promising settings, then small changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hotbed.tuning.space import Candidate
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.settings import AllocatorSettings
    from hotbed.tuning.evaluator import Evaluation, Evaluator
    from hotbed.tuning.space import Space

CAP_STEP_BYTES = 2 * MIB
"""caps are whole multiples of this, the unit in which the allocator takes memory"""
_CAP_TOLERANCE = 0.002
_SECOND_TRY = 0.985
_FRONT_SHARES = (1.005, 1.01, 1.02, 1.03, 1.05, 1.08, 1.12, 1.2)
_BASES_FROM_GRID = 3
_ROUNDS = 2
# What usually follows the grid, margins included; only the progress bar depends on it.
_REPLAYS_AFTER_GRID = 150


@dataclass(frozen=True)
class Limits:
    """What a choice may cost: milliseconds of driver calls a step; None is no limit."""

    cost_ms_per_step: float | None = None

    def accept(self, evaluation: Evaluation) -> bool:
        """Whether it fits, costs no more than allowed, and keeps to its cap (pages may be rounded past it)."""
        choice = evaluation.choice
        affordable = self.cost_ms_per_step is None or choice.cost_ms_per_step <= self.cost_ms_per_step
        keeps_to_cap = choice.cap_bytes is None or choice.peak_reserved_bytes <= choice.cap_bytes
        return evaluation.fits and affordable and keeps_to_cap


def search(evaluator: Evaluator, space: Space, limits: Limits) -> None:
    """Fills `evaluator.known`. May be interrupted at any time: what is known by then stays."""
    grid, subjects = space.without_cap(), len(evaluator.subjects)
    evaluator.expected_replays = subjects * (len(grid) + _REPLAYS_AFTER_GRID)
    evaluator.evaluate_all([Candidate(settings) for settings in grid])
    _refine_without_cap(evaluator, space, limits)
    best: Evaluation | None = None
    for settings in _bases(evaluator, space, limits):
        best = _improved(evaluator, settings, limits, best)
    for _ in range(_ROUNDS):
        if best is None:
            break
        before = best
        for settings in space.neighbours(best.candidate.settings):
            best = _improved(evaluator, settings, limits, best)
        if best is before:
            break
    _fill_front(evaluator, best)


def _refine_without_cap(evaluator: Evaluator, space: Space, limits: Limits) -> None:
    """Changes one key at a time of the best settings without a cap, as long as that helps."""
    for _ in range(_ROUNDS):
        accepted = [known for known in evaluator.fitting() if limits.accept(known)]
        best = min(accepted, key=lambda known: known.choice.peak_reserved_bytes, default=None)
        if best is None or best.candidate.cap_bytes is not None:
            return
        before = len(evaluator.known)
        evaluator.evaluate_all(
            [Candidate(settings) for settings in space.neighbours(best.candidate.settings)]
        )
        if len(evaluator.known) == before:
            return


def _bases(evaluator: Evaluator, space: Space, limits: Limits) -> list[AllocatorSettings]:
    """Settings to try under caps: the usual ones and those that did best without."""
    ranked = sorted(
        (known for known in evaluator.fitting() if limits.accept(known)),
        key=lambda known: known.choice.peak_reserved_bytes,
    )
    best = [known.candidate.settings for known in ranked[:_BASES_FROM_GRID]]
    return list(dict.fromkeys([*best, *space.under_cap()]))


def _improved(
    evaluator: Evaluator, settings: AllocatorSettings, limits: Limits, best: Evaluation | None
) -> Evaluation | None:
    """`best`, or `settings` under a cap that is smaller than the best one by more than the tolerance."""
    low = rounded_up(evaluator.lower_bound_bytes)
    tolerance = max(CAP_STEP_BYTES, rounded_up(int(low * _CAP_TOLERANCE)))
    if best is None:
        high = evaluator.evaluate(Candidate(_uncapped(settings))).choice.peak_reserved_bytes
        target = rounded_up(high)
    else:
        assert best.candidate.cap_bytes is not None
        target = best.candidate.cap_bytes - tolerance
    if target < low:
        return best
    # Acceptance is not monotone in the cap (releases fall differently), so a refusal at one cap proves little.
    tries = dict.fromkeys((target, rounded_up(int(target * _SECOND_TRY))))
    found = evaluator.evaluate_all([Candidate(settings, cap) for cap in tries if cap >= low])
    accepted = [evaluation for evaluation in found if limits.accept(evaluation)]
    if not accepted:
        return best
    first = accepted[-1]
    return smallest_cap(
        settings, first, low, tolerance, lambda caps: _accepted(evaluator, settings, limits, caps)
    )


def _uncapped(settings: AllocatorSettings) -> AllocatorSettings:
    return settings.replace(garbage_collection_threshold=None)


def _accepted(
    evaluator: Evaluator, settings: AllocatorSettings, limits: Limits, caps: list[int]
) -> list[Evaluation | None]:
    found = evaluator.evaluate_all([Candidate(settings, cap) for cap in caps])
    return [evaluation if limits.accept(evaluation) else None for evaluation in found]


def smallest_cap(
    settings: AllocatorSettings,
    first: Evaluation,
    low: int,
    tolerance: int,
    accepted: Callable[[list[int]], list[Evaluation | None]],
    ways: int = 2,
) -> Evaluation:
    """The evaluation with the smallest acceptable cap between `low` and that of `first`, to `tolerance` bytes.

    Halves (for `ways` probes at a time: divides) the interval as if acceptance were monotone in the cap; it is
    not quite (1 inversion in 16 sweeps, phantom-replay section 5), so the result is an upper bound.
    """
    best = first
    floor = low - CAP_STEP_BYTES
    while best.candidate.cap_bytes is not None and best.candidate.cap_bytes - floor > tolerance:
        caps = _probes(floor, best.candidate.cap_bytes, ways)
        if not caps:
            break
        for cap, evaluation in zip(caps, accepted(caps), strict=True):
            if evaluation is not None:
                best = evaluation
                break
            floor = cap
    return best


def _probes(low: int, high: int, ways: int) -> list[int]:
    """Up to `ways` caps strictly between `low` and `high`, ascending, at equal distances."""
    caps = {rounded_up(low + (high - low) * part // (ways + 1)) for part in range(1, ways + 1)}
    return sorted(cap for cap in caps if low < cap < high)


def rounded_up(size_bytes: int) -> int:
    """The next multiple of the cap step."""
    return -(-size_bytes // CAP_STEP_BYTES) * CAP_STEP_BYTES


def _fill_front(evaluator: Evaluator, best: Evaluation | None) -> None:
    """Caps between the bound and the default, for the middle of the front."""
    bases = [Candidate(known.candidate.settings) for known in (best,) if known is not None]
    bases += [known.candidate for known in evaluator.fitting() if known.candidate.cap_bytes is None][:1]
    caps = [rounded_up(int(evaluator.lower_bound_bytes * share)) for share in _FRONT_SHARES]
    evaluator.evaluate_all(
        [replace(base, cap_bytes=cap) for base in bases for cap in caps if cap <= evaluator.largest_cap_bytes]
    )


def pareto(evaluations: list[Evaluation]) -> list[Evaluation]:
    """Those that no other beats in both footprint and cost, smallest footprint first."""
    front: list[Evaluation] = []
    for evaluation in sorted(
        evaluations, key=lambda known: (known.choice.peak_reserved_bytes, known.choice.cost_ms_total)
    ):
        if not front or evaluation.choice.cost_ms_total < front[-1].choice.cost_ms_total:
            front.append(evaluation)
    return front
