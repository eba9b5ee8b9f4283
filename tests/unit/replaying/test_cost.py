"""Driver time of a replay, by a made-up price list."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from hotbed.gpu import CallCost, DriverCosts
from hotbed.phantom.control import Counters
from hotbed.replaying.cost import cost_of, device_calls
from hotbed.replaying.steps import Steps

MIB = 1 << 20
NONE = Counters(*[0] * len(fields(Counters)))
FREE = CallCost(0.0, 0.0)
PRICES = DriverCosts(
    cuda_malloc=CallCost(30.0, 0.5),
    cuda_free=CallCost(20.0, 0.0),
    mem_create=CallCost(10.0, 0.0),
    mem_release=FREE,
    mem_map=FREE,
    mem_unmap=FREE,
    set_access=FREE,
    gpu_name="made up",
    source="made up",
)


def test_calls_cost_their_base_and_their_size() -> None:
    end = replace(NONE, mallocs=2, malloc_bytes=40 * MIB, frees=1, free_bytes=20 * MIB)
    cost = cost_of(end, [], Steps(), PRICES)
    assert cost.device_calls == device_calls(end) == 3
    assert cost.total_ms == pytest.approx((2 * 30 + 40 * 0.5 + 20) / 1000)
    assert cost.per_step_ms == cost.total_ms


def test_a_step_costs_what_comes_after_warm_up() -> None:
    """4 steps: the first quarter, one step, is warm-up; 3 mallocs fall into the other three."""
    marks = [replace(NONE, mallocs=count) for count in (0, 5, 6, 7)]
    cost = cost_of(replace(NONE, mallocs=8), marks, Steps((0, 1, 2, 3), "inferred", 50.0), PRICES)
    assert cost.per_step_calls == 1
    assert cost.per_step_ms == pytest.approx(0.03)
    assert cost.steps == 4
