"""trace show: peaks, moments and counts of a handful of invented events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from snapshots_made import BASE, MIB, block, entry, loaded, segment, snapshot, timed

from hotbed.trace import load_trace
from hotbed.trace.overview import Peak, curves, overview, timeline
from hotbed.trace.wording import rows

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES = timed(
    [
        entry("segment_alloc", BASE, 2 * MIB),
        entry("alloc", BASE, 700),
        entry("alloc", BASE + 1024, 512, stream=7),
        entry("free_requested", BASE, 700),
        entry("free_completed", BASE, 700),
        entry("oom", 0, 1 << 40),
        entry("alloc", BASE, 100),
    ]
)
HELD = [
    block(BASE, 512, 100, "active_allocated"),
    block(BASE + 512, 512),
    block(BASE + 1024, 512, 512, "active_allocated"),
    block(BASE + 1536, 2 * MIB - 1536),
]


def test_figures_of_a_small_history(tmp_path: Path) -> None:
    found = overview(loaded(snapshot(ENTRIES, [segment(BASE, HELD)]), tmp_path))
    assert found.peak_requested == Peak(1212, 2, 20)
    assert found.peak_allocated == Peak(1536, 2, 20)
    assert found.peak_reserved == Peak(2 * MIB, 0, 0)
    assert found.actions == {
        "alloc": 3,
        "free_requested": 1,
        "free_completed": 1,
        "segment_alloc": 1,
        "oom": 1,
    }
    assert (found.span_us, found.streams, found.out_of_memory, found.steps) == (60, (0, 7), 1, None)
    assert (found.segments, found.final_reserved_bytes, found.final_active_bytes) == (1, 2 * MIB, 1024)


def test_what_was_there_before_counts_from_the_start(tmp_path: Path) -> None:
    trace = loaded(snapshot(ENTRIES[3:5], [segment(BASE, [block(BASE, 1024), *HELD[2:]])]), tmp_path)
    drawn = curves(trace)
    assert drawn.requested.tolist() == [1212, 512]
    assert drawn.allocated.tolist() == [512, 512]
    assert drawn.reserved.tolist() == [2 * MIB, 2 * MIB]


def test_without_events_peaks_are_unknown(tmp_path: Path) -> None:
    found = overview(loaded([segment(BASE, HELD)], tmp_path))
    assert (found.peak_requested, found.peak_reserved, found.span_us) == (None, None, None)
    words = dict(rows(found))
    assert (words["peak reserved"], words["time span"], words["torch"]) == ("unknown", "unknown", "unknown")


def test_the_words_name_bytes_event_and_moment(data: Path) -> None:
    words = dict(rows(overview(load_trace(data / "h200" / "detection.record.pickle.xz"))))
    assert words["peak reserved"] == "28.7 GiB (30828134400) at event 64478, 9.336 s in"
    assert words["at the end"] == "152 segments, 28.7 GiB, 65.0 MiB of it in use"


@pytest.mark.parametrize(
    ("length", "width", "expected"), [(0, 4, []), (3, 4, [0, 1, 2]), (8, 4, [1, 3, 5, 7])]
)
def test_a_timeline_keeps_the_highest_of_each_stretch(length: int, width: int, expected: list[int]) -> None:
    assert timeline(np.arange(length), width) == expected
