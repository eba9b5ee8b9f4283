"""When a round of optimizer steps is over: one optimizer, several, wrappers, and those that never step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotbed.recording.rounds import PATIENCE, Rounds


@dataclass(eq=False)
class Optimizer:
    """What Rounds looks at."""

    parameters: list[Any] = field(default_factory=lambda: [object()])

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [{"params": self.parameters}]


def step(rounds: Rounds, *optimizers: Optimizer) -> None:
    for optimizer in optimizers:
        rounds.begins(optimizer)
        rounds.ends(optimizer)


def test_each_step_of_the_only_optimizer_is_a_round() -> None:
    rounds, one = Rounds(), Optimizer()
    step(rounds, one, one, one)
    assert (rounds.complete, rounds.ends_of_rounds()) == (3, [0, 1, 2])


def test_a_round_waits_for_the_optimizer_that_steps_less_often() -> None:
    rounds, critic, generator = Rounds(), Optimizer(), Optimizer()
    rounds.expect([critic, generator])
    step(rounds, critic, critic)
    assert rounds.complete == 0
    step(rounds, generator, critic, critic, generator)
    assert (rounds.complete, rounds.ends_of_rounds()) == (2, [2, 5])


def test_a_wrapper_and_what_it_wraps_make_one_step() -> None:
    rounds, inner = Rounds(), Optimizer()
    outer = Optimizer(inner.parameters)
    for _ in range(2):
        rounds.begins(outer)
        step(rounds, inner)
        assert rounds.ends(outer)
    assert rounds.complete == 2


def test_a_step_that_raised_is_not_waited_for() -> None:
    rounds, one = Rounds(), Optimizer()
    rounds.begins(one)
    step(rounds, one)
    assert rounds.complete == 1


def test_an_optimizer_that_never_steps_is_waited_for_a_while() -> None:
    rounds, one, idle = Rounds(), Optimizer(), Optimizer()
    rounds.expect([one, idle])
    step(rounds, *[one] * (PATIENCE - 1))
    assert rounds.complete == 0
    step(rounds, one)
    assert (rounds.complete, len(rounds.ends_of_rounds())) == (PATIENCE, PATIENCE)


def test_an_optimizer_that_is_gone_is_not_waited_for() -> None:
    rounds, one = Rounds(), Optimizer()
    rounds.expect([one, Optimizer()])
    step(rounds, one)
    assert rounds.complete == 1
