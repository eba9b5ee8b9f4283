"""Why a recording gave memory back, worked out from hand-made events. Rules: allocator-semantics 3.1, 8.4; times as
measured on the phantom with torch 2.9, 2.11 and 2.14."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hotbed.replaying.releases import explain_releases
from hotbed.trace import Frame, Trace
from tests.unit.invented import ALLOC, DONE, GROW, MIB, OOM, REQUEST, SHRINK, Event, freed, trace_of

CACHED: list[Event] = [(GROW, 1, 40 * MIB), (ALLOC, 1, 40 * MIB), *freed(1, 40 * MIB), (SHRINK, 1, 40 * MIB)]
RELEASE = 4


def grows_to(size: int) -> list[Event]:
    return [(GROW, 2, size), (ALLOC, 2, size)]


def at(trace: Trace, times: list[int]) -> Trace:
    return replace(trace, events=replace(trace.events, time_us=np.array(times, np.int64)))


def is_call(trace: Trace) -> bool:
    return RELEASE in explain_releases(trace).empty_cache_events


@pytest.mark.parametrize(("gap_us", "call"), [(2, False), (4, False), (6, True), (25, True)])
def test_an_instant_driver_shows_whether_the_interpreter_was_in_between(gap_us: int, call: bool) -> None:
    trace = trace_of([*CACHED, *grows_to(50 * MIB)])
    assert is_call(at(trace, [1, 2, 3, 4, 5, 5 + gap_us, 40])) is call


def test_on_a_card_what_a_limit_can_have_forced_is_a_retry() -> None:
    trace = trace_of([(ALLOC, 9, 5), *CACHED, *grows_to(50 * MIB)])
    explained = explain_releases(at(trace, [1, 90, 91, 92, 93, 200, 300, 400]))
    assert not explained.empty_cache_events
    assert "retries" in explained.notes[0]


def test_no_retry_releases_what_would_have_served_its_request() -> None:
    assert is_call(trace_of([*CACHED, *grows_to(30 * MIB)]))


def test_memory_that_another_stream_held_until_the_retry_could_not_serve_it() -> None:
    waited: list[Event] = [(GROW, 1, 40 * MIB), (ALLOC, 1, 40 * MIB), (REQUEST, 1, 40 * MIB)]
    until: list[Event] = [(ALLOC, 3, 700), (DONE, 1, 40 * MIB), (SHRINK, 1, 40 * MIB)]
    assert not explain_releases(trace_of([*waited, *until, *grows_to(30 * MIB)])).empty_cache_events


@pytest.mark.parametrize(
    ("name", "call"), [("empty_cache", True), ("THCPModule_emptyCache()", True), ("f", False)]
)
def test_a_recorded_stack_settles_it(name: str, call: bool) -> None:
    trace = trace_of([*CACHED, *grows_to(50 * MIB)], stacks=((Frame("memory.py", 1, name),),))
    stack = trace.events.stack.copy()
    stack[RELEASE] = 0
    assert is_call(replace(trace, events=replace(trace.events, stack=stack))) is call


def test_what_did_not_fit_elsewhere_did_not_fit_here() -> None:
    """At 40 MiB another 8 MiB ran out of memory, so growing to 90 MiB must have been refused as well."""
    events = [*CACHED[:2], (OOM, 0, 8 * MIB), *CACHED[2:], *grows_to(50 * MIB)]
    explained = explain_releases(at(trace_of(events), [1, 2, 3, 4, 5, 6, 90, 99]))
    assert not explained.empty_cache_events


def test_only_the_end_of_a_pool_gives_its_memory_back() -> None:
    trace = trace_of([*CACHED, *grows_to(50 * MIB)], pools=((0, 0), (0, 3)))
    pool = np.array([1] * len(CACHED) + [0, 0], np.int32)
    explained = explain_releases(replace(trace, events=replace(trace.events, pool=pool)))
    assert explained.ended_pools == {RELEASE: ((0, 3),)}
    assert not explained.empty_cache_events
