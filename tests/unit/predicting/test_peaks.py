"""Peaks by category and step: arithmetic on a trace made by hand."""

from __future__ import annotations

import pytest

from hotbed.predicting.peaks import ROUNDING, Peaks
from hotbed.trace.marking.phases import StepMark
from tests.unit.invented import ALLOC, GROW, MIB, freed, trace_of
from tests.unit.predicting.runs import with_categories

# A parameter of 4 MiB stays; a temporary of 8 goes before a gradient of 2 comes; then an activation of 7.
EVENTS = [
    (GROW, 0x0, 32 * MIB),
    (ALLOC, 0x1000, 4 * MIB),
    (ALLOC, 0x2000, 8 * MIB),
    *freed(0x2000, 8 * MIB),
    (ALLOC, 0x3000, 2 * MIB),
    (ALLOC, 0x2000, 7 * MIB),
    *freed(0x2000, 7 * MIB),
]
NAMES = ["parameters", "temporaries", "gradients", "activations"]


@pytest.fixture
def peaks() -> Peaks:
    return Peaks.of(with_categories(trace_of(EVENTS), NAMES))


def test_categories_at_the_peak_add_up_to_it(peaks: Peaks) -> None:
    found = {row.category: (row.at_peak_bytes, row.peak_bytes) for row in peaks.whole(13 * MIB)}
    assert found == {
        "parameters": (4 * MIB, 4 * MIB),
        "gradients": (2 * MIB, 2 * MIB),
        "activations": (7 * MIB, 7 * MIB),
        "temporaries": (0, 8 * MIB),
    }


def test_what_torch_counts_beyond_requests_is_rounding(peaks: Peaks) -> None:
    found = peaks.whole(13 * MIB + 512)
    assert found[-1].category == ROUNDING
    assert sum(row.at_peak_bytes for row in found) == 13 * MIB + 512


def test_each_stretch_has_its_own_peaks(peaks: Peaks) -> None:
    marks = (StepMark("setup", 0, 2, 0.0), StepMark("train", 2, 5, 0.0), StepMark("train", 5, 9, 0.0))
    setup, first, second = peaks.steps(marks)
    assert (setup.peak_allocated_bytes, setup.peak_reserved_bytes) == (4 * MIB, 32 * MIB)
    assert (first.index, first.peak_allocated_bytes, first.live_at_end_bytes) == (0, 12 * MIB, 4 * MIB)
    assert (second.index, second.peak_allocated_bytes, second.live_at_end_bytes) == (1, 13 * MIB, 6 * MIB)


def test_a_stretch_without_events_holds_what_was_there_before(peaks: Peaks) -> None:
    (step,) = peaks.steps((StepMark("eval", 9, 9, 0.0),))
    assert step.peak_allocated_bytes == step.live_at_end_bytes == 6 * MIB


def test_a_reused_address_belongs_to_its_latest_allocation() -> None:
    """Two blocks one after the other at one address, of two categories: each free ends its own."""
    events = [(ALLOC, 0x1000, MIB), *freed(0x1000, MIB), (ALLOC, 0x1000, 2 * MIB), *freed(0x1000, 2 * MIB)]
    peaks = Peaks.of(with_categories(trace_of(events), ["inputs", "other"]))
    assert peaks.by_category["inputs"].tolist() == [MIB, 0, 0, 0, 0, 0]
    assert peaks.by_category["other"].tolist() == [0, 0, 0, 2 * MIB, 0, 0]
