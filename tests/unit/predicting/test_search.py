"""The search for the largest value, against trying every value."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import UsageError
from hotbed.predicting.search import (
    Largest,
    Probe,
    Search,
    Span,
    filled,
    parse_choices,
    refuse_unfilled,
    refuse_unused,
    side_by_side,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.predicting.search import Values


def searched(needs: Callable[[int], int | None], capacity: int, values: range) -> Largest:
    """A search over programs that need so many bytes; None is a program that fails."""

    def run(chosen: Values) -> Probe:
        need = needs(int(chosen["b"]))
        verdict = "failed" if need is None else "fits" if need <= capacity else "too large"
        known = need if verdict == "fits" else None
        return Probe(tuple(chosen.items()), verdict, known, need or 0, (need or 0) * 9 // 10, 0, None, 1.0)  # type: ignore[arg-type]

    return Search(Span("b", values), (), run, capacity).largest()


@pytest.mark.parametrize("seed", range(40))
def test_it_finds_what_trying_every_value_finds(seed: int) -> None:
    """Memory grows with some power of the value, in steps as an allocator makes them."""
    draw = random.Random(seed)
    power, step = draw.uniform(0.4, 2.5), draw.choice([1, 2, 20])
    capacity = draw.randrange(1, 10**4)
    values = range(draw.randrange(1, 9), draw.randrange(10, 2000), draw.choice([1, 1, 8]))

    def needs(value: int) -> int:
        return -(-int(10 * value**power) // step) * step

    found = searched(needs, capacity, values)
    assert found.value == max((value for value in values if needs(value) <= capacity), default=None)
    assert len(found.probes) <= 25


def test_even_growth_takes_few_runs() -> None:
    found = searched(lambda b: 1000 + 90 * b, 100_000, range(1, 10_000))
    assert (found.value, found.next_value) == (1100, 1101)
    assert len(found.probes) <= 10


def test_a_value_that_fails_by_itself_is_passed_over() -> None:
    found = searched(lambda b: None if b == 1 else 10 * b, 5000, range(1, 1025))
    assert found.value == 500
    assert found.probes[0].verdict == "failed"


def test_nothing_fits() -> None:
    assert searched(lambda b: 10 + b, 5, range(1, 100)).value is None


def test_everything_fits() -> None:
    found = searched(lambda b: b, 5000, range(1, 100))
    assert (found.value, found.next_value) == (99, None)


def test_what_fits_above_what_does_not_is_noticed_and_said() -> None:
    """51 picks an algorithm with a large workspace, 52 does not."""
    found = searched(lambda b: 900 if b == 51 or b > 52 else b, 60, range(1, 1000))
    assert found.value == 52
    assert "b=51 does not fit and b=52 does" in found.notes[0]


def test_a_program_that_always_fails_is_not_run_for_ever() -> None:
    found = searched(lambda _: None, 100, range(1, 1025))
    assert found.value is None
    assert len(found.probes) <= 4


def test_only_named_braces_are_filled() -> None:
    assert filled(["--batch={b}", "{other}", "{b}{b}"], {"b": "8"}) == ("--batch=8", "{other}", "88")


@pytest.mark.parametrize("text", ["b", "b=1", "b=5..1", "b=..5", "=1..5", "b=1..5:0"])
def test_a_bad_range_is_named(text: str) -> None:
    if text == "b=1..5:0":
        assert Span.parse(text).values == range(1, 6)
        return
    with pytest.raises(UsageError, match="no range"):
        Span.parse(text)


def test_a_range_may_have_steps() -> None:
    assert list(Span.parse("batch=8..30:8").values) == [8, 16, 24]


def test_choices_are_split_at_commas() -> None:
    assert parse_choices("ckpt=0,1,1") == ("ckpt", ("0", "1"))
    with pytest.raises(UsageError, match="names no values"):
        parse_choices("ckpt")


def test_a_variable_that_no_argument_has_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\{b\}"):
        refuse_unused(["--batch", "8"], ["b"])
    with pytest.raises(UsageError, match=r"\{ckpt\}"):
        refuse_unfilled(["--batch={b}", "--ckpt={ckpt}", '{"lr": 1}'], ["b"])


def test_ctrl_c_ends_the_runs_under_way() -> None:
    begun, ended, values = threading.Event(), threading.Event(), []

    def run(chosen: Values) -> Probe:
        values.append(chosen["b"])
        if chosen["b"] == "1":
            assert begun.wait(60)
            raise KeyboardInterrupt
        begun.set()
        assert ended.wait(60)
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        side_by_side(run, [{"b": "1"}, {"b": "2"}], ended.set)
    assert sorted(values) == ["1", "2"]
