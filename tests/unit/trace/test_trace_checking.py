"""trace check: each kind of lie is found, told in a line, and nothing else is."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from snapshots_made import BASE, MIB, TIME, block, entry, loaded, segment, snapshot, timed

from hotbed.trace.checking import check

if TYPE_CHECKING:
    from pathlib import Path

TAKEN = entry("segment_alloc", BASE, 2 * MIB)
HELD = [block(BASE, 512, 512, "active_allocated"), block(BASE + 512, 2 * MIB - 512)]
PAGE = 20 * MIB
LIES = {
    "block 0x7e0000000000 lies in no segment": [TAKEN, entry("alloc", BASE, 512), entry("alloc", BASE - (1 << 40), 512)],
    "alloc at 0x7f0000000000, where a block is in use": [TAKEN, entry("alloc", BASE, 512), entry("alloc", BASE, 512)],
    "overlaps a block in use": [TAKEN, entry("alloc", BASE, 512), entry("alloc", BASE + 512, 600), entry("alloc", BASE + 1024, 1)],
    "ends outside its segment": [TAKEN, entry("alloc", BASE, 512), entry("alloc", BASE + 2 * MIB - 512, 600)],
    "second free of 0x7f0000000000": [
        TAKEN, entry("alloc", BASE, 512), entry("free_requested", BASE, 512), entry("free_requested", BASE, 512),
    ],
    "free of 0x7f0000000000 with 700 bytes, allocated with 512": [
        TAKEN, entry("alloc", BASE, 512), entry("free_requested", BASE, 700), entry("free_completed", BASE, 700),
    ],
    "completed free of 0x7f0000000000, which nobody requested": [TAKEN, entry("alloc", BASE, 512), entry("free_completed", BASE, 512)],
    "are taken from the driver a second time": [TAKEN, entry("alloc", BASE, 512), TAKEN],
    "go back to the driver with 1 blocks in use": [TAKEN, entry("alloc", BASE, 512), entry("segment_free", BASE, 2 * MIB)],
    "time goes back by 5.0 ms": [TAKEN, entry("alloc", BASE, 512), entry("snapshot", 0, 0) | {"time_us": TIME - 4990}],
}  # fmt: skip


@pytest.mark.parametrize("line", LIES)
def test_a_lie_in_the_events_is_found(line: str, tmp_path: Path) -> None:
    entries = [{**new, **old} for new, old in zip(timed(LIES[line]), LIES[line], strict=True)]
    trace = dataclasses.replace(
        loaded(snapshot(entries, [segment(BASE, HELD)]), tmp_path), initial_segments=()
    )
    assert any(line in found for found in check([trace]).lines())


FINAL: dict[str, list[dict[str, Any]]] = {
    "segment 0x7f0000000000 (2097152 bytes) is not in the final map": [
        segment(BASE + PAGE, [block(BASE + PAGE, MIB)])
    ],
    "is not what the events made": [segment(BASE, HELD), segment(BASE + PAGE, [block(BASE + PAGE, MIB)])],
    "block 0x7f0000000000 is in use, but not in the final map": [segment(BASE, [block(BASE, 2 * MIB)])],
    "the final map differs": [segment(BASE, [{**HELD[0], "requested_size": 500}, HELD[1]])],
    "leave a hole or overlap": [segment(BASE, [HELD[0], {**HELD[1], "address": BASE + 1024}])],
    "do not fill it": [segment(BASE, HELD) | {"total_size": 4 * MIB}],
}


@pytest.mark.parametrize("line", FINAL)
def test_a_final_map_that_the_events_do_not_lead_to_is_found(line: str, tmp_path: Path) -> None:
    entries = timed([TAKEN, entry("alloc", BASE, 512)])
    trace = dataclasses.replace(loaded(snapshot(entries, FINAL[line]), tmp_path), initial_segments=())
    assert any(line in found for found in check([trace]).lines())


def test_expandable_pages_grow_shrink_and_grow_together_again(tmp_path: Path) -> None:
    entries = timed(
        [
            entry("segment_map", BASE, PAGE),
            entry("segment_map", BASE + 2 * PAGE, PAGE),
            entry("alloc", BASE + 2 * PAGE, 512),
            entry("segment_map", BASE + PAGE, PAGE),
            entry("alloc", BASE + PAGE, 512),
            entry("segment_unmap", BASE, PAGE),
        ]
    )
    blocks = [
        block(BASE + PAGE, 512, 512, "active_allocated"),
        block(BASE + PAGE + 512, PAGE - 512),
        block(BASE + 2 * PAGE, 512, 512, "active_allocated"),
        block(BASE + 2 * PAGE + 512, PAGE - 512),
    ]
    trace = loaded(snapshot(entries, [segment(BASE + PAGE, blocks, is_expandable=True)]), tmp_path)
    assert check([trace]).lines() == []
    assert trace.initial_segments == ()


def test_of_many_problems_of_a_kind_the_first_are_listed_and_all_counted(tmp_path: Path) -> None:
    entries = timed([TAKEN, *[entry("alloc", BASE, 512)] * 30])
    report = check([loaded(snapshot(entries, [segment(BASE, HELD)]), tmp_path)], ["the tail is cut"])
    assert report.counts == {"file": 1, "pair": 29}
    lines = report.lines()
    assert lines[0] == "the tail is cut"
    assert lines[1] == "device 0: event 2: alloc at 0x7f0000000000, where a block is in use"
    assert lines[-1] == "and 19 more of kind 'pair'"
    assert report.to_json()["problems"][0] == {
        "kind": "file",
        "device": None,
        "event": None,
        "text": "the tail is cut",
    }
