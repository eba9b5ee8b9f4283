"""Fragmentation: the excess over what was live, why it was of no use, and which line pins it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.findings.case import Case
from hotbed.findings.fragmentation import find
from hotbed.trace import Frame, load_trace
from tests.unit.findings.traces import Program
from tests.unit.invented import ALLOC, DONE, GROW, MIB, REQUEST

if TYPE_CHECKING:
    from pathlib import Path


def combed(settings: str = "") -> Case:
    """A temporary of 1000 MiB (line 1) goes, 20 MiB (line 2) settle in its segment, and 1000 MiB (line 3) come again."""
    program = Program()
    program.add(GROW, 0, 1000 * MIB)
    program.add(ALLOC, 0, 1000 * MIB, line=1)
    program.add(REQUEST, 0, 1000 * MIB)
    program.add(DONE, 0, 1000 * MIB)
    program.add(ALLOC, 0, 20 * MIB, line=2)
    program.add(GROW, 1 << 32, 1000 * MIB)
    program.add(ALLOC, 1 << 32, 1000 * MIB, line=3)
    return Case(program.trace(settings=settings))


def test_a_small_block_that_pins_a_large_segment_is_named() -> None:
    (found,) = find(combed())
    assert (found.code, found.severity, found.bytes) == ("fragmentation/pinned", "problem", 980 * MIB)
    assert found.where == Frame("main.py", 2, "main")
    words = " ".join(found.evidence)
    assert "1 block of main.py:2 (20.0 MiB in all) pins 980.0 MiB free around it" in words
    assert "most that was live at once is 1020.0 MiB" in words
    assert "expandable_segments:True" in str(found.fix)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("expandable_segments:True", "are on already"),
        ("max_split_size_mb:512", "instead of max_split_size_mb (not both)"),
    ],
)
def test_advice_heeds_the_settings_in_force(settings: str, words: str) -> None:
    (found,) = find(combed(settings))
    assert words in str(found.fix)


def test_whole_segments_that_nothing_fits_are_a_matter_of_sizes() -> None:
    program = Program()
    for index, size in enumerate((100, 200, 300, 400)):
        base = index << 32
        program.add(GROW, base, size * MIB)
        program.add(ALLOC, base, size * MIB, line=7)
        program.add(REQUEST, base, size * MIB)
        program.add(DONE, base, size * MIB)
    (found,) = find(Case(program.trace()))
    assert (found.code, found.bytes, found.where) == (
        "fragmentation/sizes",
        600 * MIB,
        Frame("main.py", 7, "main"),
    )
    assert "600.0 MiB in 3 pieces, the largest 300.0 MiB: whole cached segment, too small" in found.evidence


def test_what_another_stream_keeps_is_named() -> None:
    program = Program()
    program.add(GROW, 0, 400 * MIB, stream=9)
    program.add(ALLOC, 0, 400 * MIB, line=1, stream=9)
    program.add(REQUEST, 0, 400 * MIB, stream=9)
    program.add(DONE, 0, 400 * MIB, stream=9)
    program.add(GROW, 1 << 32, 400 * MIB)
    program.add(ALLOC, 1 << 32, 400 * MIB, line=2)
    (found,) = find(Case(program.trace()))
    assert (found.code, found.bytes) == ("fragmentation/stream", 400 * MIB)


def test_a_steady_job_is_in_order() -> None:
    program = Program()
    program.add(GROW, 0, 1000 * MIB)
    program.add(ALLOC, 0, 980 * MIB, line=1)
    (found,) = find(Case(program.trace()))
    assert (found.code, found.severity, found.bytes) == ("fragmentation/none", "fine", 20 * MIB)


@pytest.mark.parametrize(
    ("name", "severity", "excess_mib"),
    [
        ("detection", "problem", 29400 - 15508),
        ("token_budget", "problem", 17348 - 11818),
        ("bert_large", "fine", 10980 - 10125),
    ],
)
def test_jobs_of_an_h200(data: Path, name: str, severity: str, excess_mib: int) -> None:
    """Reserved by torch.cuda.memory_stats() on the card (measured.jsonl), live by the trace."""
    (found,) = find(Case(load_trace(data / "h200" / f"{name}.record.pickle.xz")))
    assert found.severity == severity
    assert found.bytes is not None
    assert abs(found.bytes / MIB - excess_mib) < 1
