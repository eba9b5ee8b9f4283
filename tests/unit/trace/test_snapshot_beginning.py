"""Recordings that began late or lost their beginning: what was already there is worked out from the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from snapshots_made import BASE, MIB, TIME, block, entry, loaded, segment, snapshot, timed

from hotbed.trace import Action, Block, load_trace
from hotbed.trace.beginning import beginning
from hotbed.trace.pools import by_address

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Events, Trace


def cut(events: Events, start: int) -> Events:
    """The events from `start` on, as a ring keeps them."""
    names = (
        "action",
        "address",
        "size",
        "stream",
        "pool",
        "time_us",
        "stack",
        "metadata",
        "step",
        "category",
    )
    return replace(events, **{name: getattr(events, name)[start:] for name in names}, compile_context=None)


def state_before(trace: Trace, start: int) -> tuple[dict[int, tuple[int, str]], dict[int, int]]:
    """Live blocks (address → requested bytes, state) and segments (address → bytes) that the first events made."""
    blocks: dict[int, tuple[int, str]] = {}
    segments: dict[int, int] = {}
    events = trace.events
    for action, address, size in zip(
        events.action[:start].tolist(),
        events.address[:start].tolist(),
        events.size[:start].tolist(),
        strict=True,
    ):
        if action == Action.ALLOC:
            blocks[address] = (size, "active_allocated")
        elif action == Action.FREE_REQUESTED:
            blocks[address] = (size, "active_pending_free")
        elif action == Action.FREE_COMPLETED:
            del blocks[address]
        elif action == Action.SEGMENT_ALLOC:
            segments[address] = size
        elif action == Action.SEGMENT_FREE:
            del segments[address]
    return blocks, segments


@pytest.mark.parametrize("name", ["streams", "empty_cache_loop", "graphs", "unet_mixed"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_the_beginning_of_a_cut_history_is_what_the_lost_events_made(
    name: str, part: float, data: Path
) -> None:
    trace = load_trace(data / "h200" / f"{name}.record.pickle.xz")
    start = int(len(trace.events) * part)
    kept = cut(trace.events, start)
    found = beginning(kept, by_address(kept), trace.segments, trace.pools, {})
    blocks, segments = state_before(trace, start)
    assert {one.address: one.size_bytes for one in found.segments} == segments
    inside = [one for held in found.segments for one in held.blocks if one.state != "inactive"]
    assert {one.address: (one.requested_bytes, one.state) for one in inside} == blocks
    assert (found.live_blocks, found.unplaced) == (len(blocks), 0)
    for held in found.segments:
        assert sum(one.size_bytes for one in held.blocks) == held.size_bytes


def test_a_gap_of_a_large_segment_that_cannot_be_a_block_belongs_to_the_block_before(tmp_path: Path) -> None:
    # 20 MiB segment, 19.5 MiB asked for: the allocator does not split off the last 0.5 MiB.
    asked = 39 * MIB // 2
    entries = timed([entry("free_requested", BASE, asked), entry("free_completed", BASE, asked)])
    trace = loaded(snapshot(entries, [segment(BASE, [block(BASE, 20 * MIB, asked)])]), tmp_path)
    (held,) = trace.initial_segments
    assert held.blocks == (Block(BASE, 20 * MIB, asked, "active_allocated"),)


def test_pages_of_expandable_segments_are_unmapped_and_mapped_again_backwards(tmp_path: Path) -> None:
    page = 20 * MIB
    entries = timed(
        [
            entry("segment_unmap", BASE + page, page),
            entry("segment_map", BASE + 2 * page, page),
            entry("alloc", BASE + 2 * page, page),
        ]
    )
    held = [
        segment(BASE, [block(BASE, page)], is_expandable=True),
        segment(
            BASE + 2 * page, [block(BASE + 2 * page, page, page, "active_allocated")], is_expandable=True
        ),
    ]
    trace = loaded(snapshot(entries, held), tmp_path)
    (before,) = trace.initial_segments
    assert (before.address, before.size_bytes, before.is_expandable) == (BASE, 2 * page, True)
    assert [one.state for one in before.blocks] == ["inactive"]


def test_a_segment_given_back_goes_back_to_the_pool_that_its_entry_names(tmp_path: Path) -> None:
    entries = timed([entry("segment_free", BASE, 20 * MIB, pool_id=(2, 1), stream=5)])
    (held,) = loaded(snapshot(entries, []), tmp_path).initial_segments
    assert (held.pool, held.stream, held.is_large, held.is_expandable) == ((2, 1), 5, True, False)


def test_what_is_missing_is_said_in_numbers(tmp_path: Path) -> None:
    held = [block(BASE, MIB, MIB, "active_allocated"), block(BASE + MIB, MIB, MIB - 3)]
    entries = timed(
        [entry("free_requested", BASE + MIB, MIB - 3), entry("free_completed", BASE + MIB, MIB - 3)]
    )
    trace = loaded(snapshot(entries, [segment(BASE, held)]), tmp_path)
    (sentence,) = trace.missing
    assert "2 blocks (2.0 MiB) in 1 segments (2 MiB) were already there" in sentence
    assert "peaks and requests before it are unknown" in sentence


def test_blocks_in_no_known_segment_are_counted_as_missing(tmp_path: Path) -> None:
    entries = timed([entry("free_requested", BASE, 512), entry("free_completed", BASE, 512)])
    trace = loaded(snapshot(entries, []), tmp_path)
    assert any(sentence.startswith("1 of these blocks lie in no segment") for sentence in trace.missing)


def test_a_ring_that_was_made_smaller_shows_as_time_going_backwards(tmp_path: Path) -> None:
    entries = timed(
        [entry("segment_alloc", BASE, 2 * MIB), entry("alloc", BASE, 512), entry("snapshot", 0, 512)]
    )
    entries[2]["time_us"] = TIME - 5000
    held = segment(BASE, [block(BASE, 512, 512, "active_allocated"), block(BASE + 512, 2 * MIB - 512)])
    trace = loaded(snapshot(entries, [held]), tmp_path)
    assert trace.missing[0].startswith("time goes backwards 1 times, first behind entry 1 by 5.0 ms")
