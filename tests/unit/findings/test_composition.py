"""Who holds the peak."""

from __future__ import annotations

from hotbed.findings.case import Case
from hotbed.findings.composition import find
from hotbed.trace import Frame
from tests.unit.findings.traces import Program
from tests.unit.invented import ALLOC, DONE, GROW, MIB, REQUEST, trace_of


def test_lines_and_categories_of_the_peak() -> None:
    program = Program()
    program.add(GROW, 0, 200 * MIB)
    program.add(ALLOC, 0, 20 * MIB, line=1, category="parameters")
    for index in range(3):
        program.add(ALLOC, (20 + 30 * index) * MIB, 30 * MIB, line=2, category="activations")
    program.add(REQUEST, 20 * MIB, 30 * MIB)
    program.add(DONE, 20 * MIB, 30 * MIB)
    program.add(ALLOC, 20 * MIB, 10 * MIB, line=3)
    (found,) = find(Case(program.trace()))
    assert (found.code, found.bytes) == ("peak/composition", 110 * MIB)
    assert (found.where, found.others) == (Frame("main.py", 2, "main"), (Frame("main.py", 1, "main"),))
    words = " ".join(found.evidence)
    assert "activations 90.0 MiB (82 %, 3 blocks)" in words
    assert "main.py:2 90.0 MiB (82 %, 3 blocks)" in words
    assert "activations" in str(found.fix)


def test_without_stacks_and_categories_the_sizes_remain() -> None:
    (found,) = find(Case(trace_of([(GROW, 0, 20 * MIB), (ALLOC, 0, 3 * MIB)])))
    assert (found.bytes, found.where, found.fix) == (3 * MIB, None, None)
    assert found.evidence == ("event 1 of 2: 3.0 MiB allocated; reserved at its own peak 20.0 MiB",)


def test_nothing_allocated_is_nothing_to_say() -> None:
    assert list(find(Case(trace_of([])))) == []
