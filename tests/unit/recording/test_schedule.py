"""When a recorder reads: wholly at first, then within its budget, and never less than is promised."""

from __future__ import annotations

import pytest

from hotbed.recording.schedule import CLEAR_S, ENTRY_S, LongStretch, Plan, Schedule


def run(plan: Plan, *, steps: int, step_s: float, entries: int) -> tuple[list[int], float, float]:
    """Steps after which a program of such steps is read, the seconds spent on that, and those of the program."""
    schedule = Schedule(plan, 0.0)
    now, spent, pending = 0.0, 0.0, 0
    read = []
    for step in range(1, steps + 1):
        now += step_s
        pending = min(pending + entries, plan.ring_entries)
        what = schedule.decide(now, pending, step)
        if what == "read":
            cost = 0.002 + pending * ENTRY_S
            schedule.was_read(now + cost, cost, pending)
            read.append(step)
        elif what == "clear":
            cost = pending * CLEAR_S
            schedule.was_cleared(cost)
        if what is not None:
            now, spent, pending = now + cost, spent + cost, 0
    return read, spent, now


def test_the_first_steps_are_read_so_that_little_is_lost() -> None:
    read, _, _ = run(Plan(), steps=10, step_s=0.1, entries=3000)
    assert read == [1, 2, 4, 8, 10]


@pytest.mark.parametrize(("step_s", "entries"), [(0.1, 3000), (0.005, 3000), (2.0, 60_000), (0.01, 500_000)])
def test_later_the_budget_is_kept_and_used(step_s: float, entries: int) -> None:
    steps = round(600 / step_s)
    read, spent, seconds = run(Plan(), steps=steps, step_s=step_s, entries=entries)
    _, first, _ = run(Plan(), steps=11, step_s=step_s, entries=entries)
    assert spent - first <= 0.01 * seconds
    assert len([step for step in read if step > 11]) >= 10


def test_a_program_that_allocates_little_is_read_without_gaps() -> None:
    schedule = Schedule(Plan(), 0.0)
    for step in range(1, 500):
        what = schedule.decide(float(step), 30, step)
        assert what != "clear"
        if what == "read":
            schedule.was_read(float(step), 0.001, 30)
    assert schedule.state == "whole"


def test_every_nth_step_is_read_whatever_it_costs() -> None:
    read, _, _ = run(Plan(budget=1e-9, every=7), steps=60, step_s=0.1, entries=3000)
    assert [step for step in read if step > 10] == [14, 21, 28, 35, 42, 49, 56]


def test_everything_is_read_if_that_is_wanted() -> None:
    schedule = Schedule(Plan(whole=True), 0.0)
    assert schedule.decide(0.1, 31_000, None) == "read"
    assert schedule.decide(3.0, 1, None) == "read"
    assert schedule.decide(0.1, 10, 500) is None


def test_owners_are_asked_for_after_powers_of_two_once_that_is_paid_for() -> None:
    schedule = Schedule(Plan(), 0.0)
    assert [step for step in range(1, 9) if schedule.wants_sample(0.0, step)] == [2, 3, 4, 5, 6, 7, 8]
    schedule.was_sampled(0.3)
    schedule.decide(1.0, 0, 11)
    assert not schedule.wants_sample(2.0, 16)
    assert not schedule.wants_sample(118.0, 17)
    assert schedule.wants_sample(122.0, 18)


def test_addresses_are_noted_when_the_step_is_read_or_that_is_paid_for() -> None:
    schedule = Schedule(Plan(budget=0.012), 0.0)
    assert schedule.wants_details(0.0)
    schedule.were_detailed(0.1, noted=True)
    schedule.decide(1.0, 0, 11)
    assert not schedule.wants_details(100.0)
    assert schedule.wants_details(102.0)
    schedule.were_detailed(0.1, noted=True)
    assert not schedule.wants_details(200.0)
    schedule.was_cleared(0.0)
    assert schedule.wants_details(200.0)


def test_a_stretch_without_steps_is_looked_at_when_its_allocations_have_doubled() -> None:
    stretch = LongStretch()
    looked = []
    for made in range(0, 5000, 50):
        if stretch.is_due(made):
            looked.append(made)
            stretch.looked(made)
    assert looked == [300, 600, 1200, 2400, 4800]


def test_steps_are_no_long_stretches() -> None:
    stretch = LongStretch()
    for step in range(1, 10):
        made = 1000 * step
        stretch.begins(made)
        assert step == 1 or not any(stretch.is_due(made + more) for more in range(0, 1999, 100))
    assert stretch.is_due(made + 2000)
