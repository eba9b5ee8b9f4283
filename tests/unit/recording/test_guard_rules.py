"""When the guard calls a call useless: rules on numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hotbed.recording.guard.calling import Caller
from hotbed.recording.guard.levels import Room
from hotbed.recording.guard.rules import is_near, judge
from hotbed.recording.guard.segments import Segment, gone, not_served
from hotbed.recording.guard.sites import Interval, Site
from hotbed.trace.model import Frame
from hotbed.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = (0, 0, (0, 0), False, False)
GROWING = (0, 0, (0, 0), False, True)


def site(kind: Any = "empty_cache", *, by_torch: bool = False, calls: int = 12, gap: float = 0.1) -> Site:
    """A line that empties 1 GiB each 100 ms, which takes 10 ms; all of it is taken again."""
    found = Site(kind, Caller(Frame("train.py", 7, "main"), None, by_torch), calls=calls)
    found.recent += [Interval(0.01, gap, GIB, False, again=GIB, mallocs=20) for _ in range(min(calls, 16))]
    found.missing += [(0, 2 * GIB), (0, 2 * GIB)]
    return found


def last(change: Callable[[Interval], Any]) -> Callable[[Site], Any]:
    return lambda found: change(found.recent[-1])


def test_a_call_in_a_hot_loop_that_is_undone_each_time_is_useless() -> None:
    assert judge(site()) == "useless"
    assert judge(site(calls=5)) == "new"
    assert judge(site(gap=30.0)) == "rare"
    assert judge(site(by_torch=True)) == "torch"


@pytest.mark.parametrize(
    ("change", "judgement"),
    [
        (last(lambda interval: setattr(interval, "near_limit", True)), "limit"),
        (lambda found: [setattr(interval, "rested", True) for interval in list(found.recent)[:4]], "parks"),
        (lambda found: found.missing.append((GIB, 4 * GIB)), "useful"),
        (lambda found: [setattr(interval, "again", 0) for interval in found.recent], "useful"),
        (lambda found: found.missing.clear(), "new"),
        (
            lambda found: (
                [
                    setattr(interval, "seconds", 0.0) or setattr(interval, "again", MIB)
                    for interval in found.recent
                ]
                and [
                    setattr(interval, "mallocs", 1) or setattr(interval, "returned", MIB)
                    for interval in found.recent
                ]
            ),
            "cheap",
        ),
    ],
)
def test_calls_that_may_do_good_are_left_alone(change: Callable[[Site], Any], judgement: str) -> None:
    found = site()
    change(found)
    assert judge(found) == judgement


def test_a_collection_is_useless_only_where_it_frees_nothing_and_python_collects_by_itself() -> None:
    found = site("gc.collect")
    assert judge(found) == "useless"
    assert judge(found, automatic_gc=False) == "useful"
    found.freed_bytes = 8 * MIB
    assert judge(found) == "useful"


def test_memory_is_near_its_limit_sooner_where_others_need_it() -> None:
    assert is_near(Room(GIB, 16 * GIB), crowded=False)
    assert not is_near(Room(3 * GIB, 16 * GIB), crowded=False)
    assert is_near(Room(3 * GIB, 16 * GIB), crowded=True)


def test_what_was_returned_serves_what_fits_into_it() -> None:
    returned = [Segment(PLACE, 100 * MIB), Segment(PLACE, 20 * MIB)]
    assert (
        not_served(returned, [Segment(PLACE, 60 * MIB), Segment(PLACE, 40 * MIB), Segment(PLACE, 20 * MIB)])
        == 0
    )
    assert not_served(returned, [Segment(PLACE, 120 * MIB)]) == 120 * MIB
    assert not_served(returned, [Segment((0, 7, (0, 0), False, False), 20 * MIB)]) == 20 * MIB
    assert not_served([Segment(GROWING, 50 * MIB)], [Segment(GROWING, 60 * MIB)]) == 10 * MIB


def test_an_expandable_segment_is_gone_by_what_it_shrank() -> None:
    before, after = (
        {"a": Segment(GROWING, 60 * MIB), "b": Segment(PLACE, 2 * MIB)},
        {"a": Segment(GROWING, 20 * MIB)},
    )
    assert gone(before, after) == [Segment(GROWING, 40 * MIB), Segment(PLACE, 2 * MIB)]
