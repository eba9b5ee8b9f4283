"""Which allocation an address belonged to, at a place in the history or at a time."""

from __future__ import annotations

import numpy as np
import pytest

from hotbed.trace.marking.blocks import Blocks
from hotbed.trace.marking.categories import moments_of
from hotbed.trace.model import NONE, Action, Events, Trace

A, F, C = Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED
HISTORY = [
    (A, 1000, 100),
    (A, 2000, 50),
    (F, 1000, 100),
    (C, 1000, 100),
    (A, 1000, 80),
    (F, 2000, 50),
    (C, 2000, 50),
]


@pytest.fixture
def blocks() -> Blocks:
    """HISTORY, an event every 10 microseconds."""
    action, address, size = (np.array(column) for column in zip(*HISTORY, strict=True))
    none = np.full(len(HISTORY), NONE, np.int32)
    events = Events(
        action=action.astype(np.uint8),
        address=address.astype(np.uint64),
        size=size.astype(np.int64),
        stream=np.zeros(len(HISTORY), np.uint64),
        pool=none,
        time_us=np.arange(len(HISTORY)) * 10,
        stack=none,
        metadata=none,
        step=none,
        category=none,
    )
    return Blocks(Trace("test", 0, events, ()))


def test_an_address_belongs_to_the_block_that_was_live_there(blocks: Blocks) -> None:
    assert [blocks.at([1000], place).tolist() for place in (0, 1, 2, 3, 5)] == [[], [0], [0], [], [2]]


def test_an_address_within_a_block_belongs_to_it(blocks: Blocks) -> None:
    assert blocks.at([1079, 2049, 2050], 5).tolist() == [2, 1]
    assert blocks.at([1080], 5).tolist() == []


def test_a_place_is_found_from_counts_of_allocations_and_frees(blocks: Blocks) -> None:
    assert [blocks.place(*counts) for counts in ((0, 0), (1, 0), (2, 0), (2, 1), (3, 1), (3, 2))] == [
        0,
        1,
        2,
        4,
        5,
        7,
    ]


def test_a_time_finds_the_block_even_if_its_clock_is_a_little_early(blocks: Blocks) -> None:
    assert blocks.at_times([1000, 1000, 2000, 2000, 9], [5, 45, 5, 45, 45]).tolist() == [0, 2, 1, 1, -1]


def test_a_block_that_was_never_freed_lives_to_the_end(blocks: Blocks) -> None:
    assert blocks.freed_at.tolist() == [2, 5, 7]


@pytest.mark.parametrize(("counted_us", "timed_us"), [(5, 15), (-699, -689), (709, 715)])
def test_a_mark_without_counts_lies_where_its_time_says(
    blocks: Blocks, counted_us: int, timed_us: int
) -> None:
    """Even where the clock of the marks and that of the history have come apart: the first mark lies between 0 and 10."""
    told = [("counted", counted_us, [(1, 0)]), ("timed", timed_us, None)]
    rows = [{"kind": kind, "time_us": time, "positions": at} for kind, time, at in told]
    assert [moment.place for moment in moments_of({"rounds": [], "marks": rows}, blocks)] == [1, 2]


def test_a_mark_without_counts_stays_between_those_that_have_them(blocks: Blocks) -> None:
    told = [("counted", 15, [(2, 0)]), ("timed", 1, None), ("timed", 90, None), ("counted", 35, [(2, 1)])]
    rows = [{"kind": kind, "time_us": time, "positions": at} for kind, time, at in told]
    assert [moment.place for moment in moments_of({"rounds": [], "marks": rows}, blocks)] == [2, 2, 4, 4]
