"""The watch for leaks while a program runs: what it tells, and that what ends or varies does not alarm it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from hotbed.recording.leak_watch import Alert, Held, LeakWatch, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MIB, GIB = 1 << 20, 1 << 30
KEPT: Stack = (("train.py", 12, "main"),)
MODEL: Stack = (("model.py", 3, "build"),)


def alerts(levels: Iterable[int], blocks: Callable[[int], int] = lambda step: 0) -> list[Alert]:
    """Of a run with `levels` MiB live at step ends; the line KEPT holds `blocks(step)` of 1 MiB."""
    told: list[Alert] = []
    now = [0]

    def memory_map() -> dict[Stack, Held]:
        kept = blocks(now[0])
        return {MODEL: Held(4, 400 * MIB), KEPT: Held(kept, kept * MIB)}

    watch = LeakWatch(80 * GIB, memory_map, told.append)
    for step, level in enumerate(levels):
        now[0] = step
        watch.step_ended(level * MIB)
    return told


def test_growth_is_told_once_with_the_stack_that_grew() -> None:
    (alert,) = alerts((400 + step for step in range(1000)), lambda step: step)
    assert [stack for stack, _ in alert.stacks] == [KEPT]
    assert alert.per_step_bytes == MIB
    assert alert.steps < 300
    assert alert.steps_left == pytest.approx(80 * 1024 - 400 - alert.steps, abs=2)


def test_growth_that_soon_fills_the_gpu_is_told_soon() -> None:
    (alert,) = alerts((400 + 1800 * step for step in range(40)), lambda step: 1800 * step)
    assert alert.steps <= 32
    assert alert.steps_left < 25


def test_growth_is_told_among_batches_of_every_size() -> None:
    draw = random.Random(1)
    (alert,) = alerts((400 + step + draw.randrange(60) for step in range(2000)), lambda step: step)
    assert alert.per_step_bytes == pytest.approx(MIB, rel=0.2)


INNOCENT = {
    "flat": lambda step: 400,
    "warm-up": lambda step: 400 + 200 * min(step, 3),
    "a ring buffer of 20": lambda step: 400 + min(step, 20),
    "a cache that fills ever slower": lambda step: 400 + int(300 * (1 - 0.93**step)),
    "the garbage collector's teeth": lambda step: 400 + step % 90,
    "batches of every size": lambda step: 400 + random.Random(step).randrange(500),
}


@pytest.mark.parametrize("name", INNOCENT)
def test_what_ends_or_varies_is_not_told(name: str) -> None:
    assert alerts(map(INNOCENT[name], range(3000)), lambda step: step) == []


def test_growth_that_no_line_shows_is_not_told() -> None:
    assert alerts(400 + step for step in range(1000)) == []
