"""What the driver calls of a replay would cost in time on the real card."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hotbed.gpu import DEFAULT_GPU, costs_for, find_gpu
from hotbed.replaying.outcome import Cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.gpu import DriverCosts
    from hotbed.phantom.control import Counters
    from hotbed.replaying.steps import Steps

# Share of the steps that count as warm-up: caches grow there once, however long the training is.
_WARM_UP = 0.25


def device_calls(counters: Counters) -> int:
    """Calls that take memory from the driver or return it."""
    return (
        counters.mallocs
        + counters.frees
        + counters.creates
        + counters.releases
        + counters.maps
        + counters.unmaps
        + counters.set_accesses
        + counters.async_mallocs
        + counters.async_frees
    )


def driver_us(counters: Counters, costs: DriverCosts) -> float:
    """Microseconds of the synchronous calls. Stream-ordered calls (2 us a pair) are not driver stalls: left out."""
    created = counters.create_bytes
    return (
        costs.cuda_malloc.us(counters.malloc_bytes, counters.mallocs)
        + costs.mem_create.us(created, counters.creates)
        + costs.mem_map.us(created, counters.maps)
        + costs.set_access.us(
            created, counters.maps
        )  # one call opens many pages and costs as much as for each
        + returning_us(counters, costs)
    )


def returning_us(counters: Counters, costs: DriverCosts) -> float:
    """The part of it that gives memory back."""
    created = counters.create_bytes
    unmapped = created * counters.unmaps / counters.maps if counters.maps else 0.0
    released = created * counters.releases / counters.creates if counters.creates else 0.0
    return (
        costs.cuda_free.us(counters.free_bytes, counters.frees)
        + costs.mem_unmap.us(unmapped, counters.unmaps)
        + costs.mem_release.us(released, counters.releases)
    )


def growth_us(
    taken: int, mallocs: int, returned: int, frees: int, gpu: str | None = None
) -> tuple[float, str]:
    """Microseconds of `mallocs` cudaMalloc over `taken` bytes and `frees` cudaFree over `returned`, and whose costs
    these are, in words. `gpu` is a name as the driver says it; for cards nobody measured, those of an H200."""
    costs = costs_for(replace(find_gpu(DEFAULT_GPU), name=gpu) if gpu else find_gpu(DEFAULT_GPU))
    return costs.cuda_malloc.us(taken, mallocs) + costs.cuda_free.us(returned, frees), costs.gpu_name


def cost_of(end: Counters, marks: Sequence[Counters], steps: Steps, costs: DriverCosts) -> Cost:
    """Cost of a replay from its final counters and those at the beginning of each step it reached."""
    total_us = driver_us(end, costs)
    returning = returning_us(end, costs)
    calls = device_calls(end)
    warm = warm_up_steps(len(marks))
    if len(marks) > warm > 0:
        start = marks[warm]
        settled = len(marks) - warm
        per_step_us = (total_us - driver_us(start, costs)) / settled
        per_step_calls = (calls - device_calls(start)) / settled
        returning = (returning - returning_us(start, costs)) / settled
    else:
        per_step_us, per_step_calls = total_us, float(calls)
    return Cost(
        device_calls=calls,
        total_ms=total_us / 1000,
        per_step_ms=per_step_us / 1000,
        per_step_calls=per_step_calls,
        steps=max(len(steps), 1),
        steps_source=steps.source,
        step_ms=steps.step_ms,
        source=costs.source,
        returning_per_step_ms=returning / 1000,
    )


def warm_up_steps(steps: int) -> int:
    """How many of `steps` count as warm-up: a quarter, at least one; none when there are fewer than three."""
    return max(1, round(steps * _WARM_UP)) if steps >= 3 else 0
