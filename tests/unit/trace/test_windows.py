"""Windows of history become one trace: what lies between them is bridged, and counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hotbed.trace import Action, load_trace
from hotbed.trace.beginning import beginning
from hotbed.trace.checking import check
from hotbed.trace.pools import by_address
from hotbed.trace.windows import Window, join

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Trace


def part(trace: Trace, first: int, end: int) -> Trace:
    """Events [first, end) of `trace` with the memory maps around them, as torch would have handed them out."""
    return beginning_from(ending_at(trace, end), first)


def ending_at(trace: Trace, end: int) -> Trace:
    """Its map is found from the other side: what it takes to undo the rest."""
    rest = cut(trace, end, len(trace.events))
    return replace(cut(trace, 0, end), segments=before(rest))


def beginning_from(trace: Trace, first: int) -> Trace:
    rest = cut(trace, first, len(trace.events))
    return replace(rest, initial_segments=before(rest))


def cut(trace: Trace, first: int, end: int) -> Trace:
    columns = {
        name: None if column is None else column[first:end] for name, column in vars(trace.events).items()
    }
    return replace(trace, events=replace(trace.events, **columns))


def before(trace: Trace) -> tuple:  # type: ignore[type-arg]
    events = trace.events
    if not len(events):
        return trace.segments
    return beginning(events, by_address(events), trace.segments, trace.pools, {}).segments


def counted(trace: Trace, end: int) -> tuple[int, int]:
    action = trace.events.action[:end]
    return int((action == Action.ALLOC).sum()), int((action == Action.FREE_REQUESTED).sum())


@pytest.fixture(scope="module")
def whole(data: Path) -> Trace:
    return load_trace(data / "h200" / "streams.record.pickle.xz")


def window(trace: Trace, first: int, end: int) -> Window:
    time = int(trace.events.time_us[end - 1])
    return Window(part(trace, first, end), counted(trace, end), time)


def test_windows_without_gaps_are_the_whole(whole: Trace) -> None:
    n = len(whole.events)
    joined = join([window(whole, *ends) for ends in ((0, n // 3), (n // 3, n // 2), (n // 2, n))], (0, 0))
    assert joined.gaps == ()
    for name in ("action", "address", "size", "stream", "time_us"):
        assert (getattr(joined.trace.events, name) == getattr(whole.events, name)).all()
    assert check([joined.trace]).problems == check([whole]).problems == ()
    for end in (1, n // 3, n // 3 + 1, n - 1, n):
        allocations, frees = counted(whole, end)
        place, in_gap = joined.counted.place(allocations, frees)
        assert not in_gap
        assert counted(whole, place) == (allocations, frees)


@pytest.mark.parametrize("gap", [(0.2, 0.5), (0.3, 0.9), (0.0, 0.7)])
def test_a_gap_is_bridged_from_map_to_map(gap: tuple[float, float], whole: Trace) -> None:
    n = len(whole.events)
    low, high = int(gap[0] * n), int(gap[1] * n)
    windows = [window(whole, *ends) for ends in ((0, max(low, 1)), (high, n))]
    joined = join(windows, (0, 0))
    (found,) = joined.gaps
    assert check([joined.trace]).problems == ()
    assert found.allocations == counted(whole, high)[0] - counted(whole, max(low, 1))[0]
    assert found.event - found.bridged_events == max(low, 1)
    assert len(joined.trace.events) == max(low, 1) + found.bridged_events + n - high
    middle = counted(whole, (low + high) // 2)
    assert joined.counted.place(*middle) == (found.event, True)
    assert joined.counted.place(*counted(whole, n))[0] == len(joined.trace.events)


def test_what_was_overwritten_before_the_first_window_is_a_gap_too(whole: Trace) -> None:
    n = len(whole.events)
    joined = join([window(whole, n // 2, n)], (0, 0))
    assert [(gap.event, gap.allocations) for gap in joined.gaps] == [(0, counted(whole, n // 2)[0])]
    assert check([joined.trace]).problems == ()


def test_a_block_at_the_same_place_with_another_stack_is_another_one(data: Path) -> None:
    whole = load_trace(data / "h200" / "leak.frames.pickle.xz")
    n = len(whole.events)
    first, last = window(whole, 0, n // 2), window(whole, n // 2, n)
    stacks = tuple((replace(stack[0], line=9999), *stack[1:]) for stack in last.trace.stacks)
    joined = join([first, replace(last, trace=replace(last.trace, stacks=stacks))], (0, 0))
    (gap,) = joined.gaps
    made_up = joined.trace.events.action[gap.event - gap.bridged_events : gap.event]
    made, ended = (np.count_nonzero(made_up == kind) for kind in (Action.ALLOC, Action.FREE_COMPLETED))
    assert made == ended > 0
    assert gap.allocations == 0
    assert check([joined.trace]).problems == ()
