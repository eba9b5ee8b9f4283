"""Goals as limits, and the front."""

from __future__ import annotations

import pytest

from hotbed.errors import UsageError
from hotbed.replaying.steps import Steps
from hotbed.settings import AllocatorSettings
from hotbed.tuning.choosing import limits_for
from hotbed.tuning.evaluator import Evaluation
from hotbed.tuning.recommendation import Choice, Margin
from hotbed.tuning.search import Limits, pareto
from hotbed.tuning.space import Candidate


def evaluation(peak: int, cost: float, cap: int | None = None, *, fits: bool = True) -> Evaluation:
    choice = Choice("", cap, peak, 0, cost, cost, fits)
    return Evaluation(Candidate(AllocatorSettings(), cap), choice)


def test_balanced_spends_one_percent_of_a_step() -> None:
    limits = limits_for("balanced", Steps(step_ms=200.0), evaluation(100, 0.1))
    assert limits.cost_ms_per_step == 2.0


def test_balanced_allows_what_the_default_costs_already() -> None:
    assert limits_for("balanced", Steps(step_ms=200.0), evaluation(100, 7.0)).cost_ms_per_step == 7.0


def test_an_unknown_goal_is_named() -> None:
    with pytest.raises(UsageError, match="'small'"):
        limits_for("small", Steps(), evaluation(100, 0.1))


@pytest.mark.parametrize(
    ("candidate", "accepted"),
    [
        (evaluation(100, 1.0), True),
        (evaluation(100, 2.5), False),
        (evaluation(100, 1.0, fits=False), False),
        (evaluation(120, 1.0, cap=110), False),
        (evaluation(110, 1.0, cap=110), True),
    ],
)
def test_limits(candidate: Evaluation, accepted: bool) -> None:
    assert Limits(2.0).accept(candidate) is accepted


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    cheap, middle, beaten, small = (
        evaluation(300, 1.0),
        evaluation(200, 2.0),
        evaluation(250, 3.0),
        evaluation(100, 9.0),
    )
    assert pareto([cheap, middle, beaten, small]) == [small, middle, cheap]


def test_a_cap_may_be_used_in_full() -> None:
    assert evaluation(90, 0.0, cap=110).choice.footprint_bytes == 110
    assert evaluation(90, 0.0).choice.footprint_bytes == 90


def test_the_larger_of_spread_and_growth_counts_in_a_margin() -> None:
    assert Margin(1000, 30, 50, 4, 6).total_bytes == 54
