"""What differs between the files of several ranks."""

from __future__ import annotations

from dataclasses import replace

from hotbed.findings.case import Case
from hotbed.findings.ranks import find_across
from hotbed.trace import Frame
from hotbed.trace.recorded import CacheCall
from tests.unit.findings.traces import Program, codes
from tests.unit.invented import ALLOC, MIB


def case(rank: int, extra_mib: int, calls: int = 0) -> Case:
    """500 MiB of line 1, and `extra_mib` of line 8."""
    program = Program()
    program.add(ALLOC, 0, 500 * MIB, line=1, category="parameters")
    program.add(ALLOC, 1 << 40, extra_mib * MIB, line=8, category="activations")
    site = Frame("main.py", 20, "main")
    program.calls = [CacheCall("empty_cache", site, 0, 0.0, 0, index, 0, 0, 0, 0) for index in range(calls)]
    return Case(replace(program.trace(rank=rank), source=f"/runs/run.rank{rank}.hbt"))


def test_the_rank_that_holds_more_and_what() -> None:
    (found,) = find_across([case(0, 300), case(1, 100), case(2, 100)])
    assert (found.code, found.severity, found.bytes, found.rank) == (
        "rank/asymmetry",
        "problem",
        200 * MIB,
        0,
    )
    assert found.where == Frame("main.py", 8, "main")
    words = " ".join(found.evidence)
    assert "rank 0 (run.rank0.hbt) 800.0 MiB, rank 1 (run.rank1.hbt) 600.0 MiB" in words
    assert "activations 200.0 MiB more" in words


def test_equal_ranks_and_a_single_one_are_nothing_to_say() -> None:
    assert list(find_across([case(0, 110), case(1, 100)])) == []
    assert list(find_across([case(0, 300)])) == []


def test_a_cache_that_one_rank_alone_empties() -> None:
    found = list(find_across([case(0, 100, calls=5), case(1, 100)]))
    assert codes(found) == ["rank/calls"]
    assert (found[0].rank, found[0].where) == (0, Frame("main.py", 20, "main"))
    assert found[0].evidence == ("rank 0 (run.rank0.hbt): 5 calls and rank 1 (run.rank1.hbt): 0 calls",)
