"""All rules together: order, marks, groups, and the search for savings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.findings import looking
from hotbed.findings.case import Case
from hotbed.findings.finding import Finding
from hotbed.findings.layout import layout_at
from hotbed.findings.looking import examine
from hotbed.trace import load_trace
from tests.unit.findings.traces import Program, codes
from tests.unit.invented import ALLOC, GROW, MIB

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Trace


def test_problems_come_first_then_the_larger_matter(data: Path) -> None:
    found = examine([load_trace(data / "h200/kv_serving.record.pickle.xz")])
    assert codes(found)[:2] == ["fragmentation/sizes", "peak/composition"]


def test_memory_that_is_held_comes_before_memory_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Finding("cache/useless", "problem", "", (), bytes=9 * MIB)
    held = Finding("leak/retained-graph", "problem", "", (), bytes=MIB)
    noticed = Finding("peak/eval", "notice", "", (), bytes=99 * MIB)
    monkeypatch.setattr(looking, "RULES", (("peak", lambda _: iter((noticed, passed, held))),))
    assert examine([Program().trace()], ["peak"]) == [held, passed, noticed]


def test_findings_carry_the_device_and_rank_of_their_trace() -> None:
    program = Program()
    program.add(GROW, 0, 20 * MIB)
    program.add(ALLOC, 0, 15 * MIB)
    found = examine([program.trace(rank=3, device=1)])
    assert {(finding.rank, finding.device) for finding in found} == {(3, 1)}


def test_savings_are_searched_for_on_request_only(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def note(finding: Finding, trace: Trace) -> Finding:
        asked.append(finding.code)
        return finding

    monkeypatch.setattr(looking, "with_savings", note)
    trace = load_trace(data / "h200/token_budget.record.pickle.xz")
    examine([trace], ["fragmentation"])
    assert asked == []
    examine([trace], ["fragmentation", "peak"], tuned=True)
    assert asked == ["fragmentation/sizes"]


@pytest.mark.parametrize("name", ["detection", "streams", "graphs", "leak"])
def test_the_holes_are_those_of_the_memory_map(data: Path, name: str) -> None:
    case = Case(load_trace(data / "h200" / f"{name}.record.pickle.xz"))
    for place in (case.reserved_peak, len(case.trace.events)):
        free = [b.size_bytes for s in case.map_at(place) for b in s.blocks if b.state == "inactive"]
        layout = layout_at(case, place)
        assert sorted(layout.hole_bytes.tolist()) == sorted(free)
        whole = [
            s.size_bytes for s in case.map_at(place) if len(s.blocks) == 1 and s.blocks[0].state == "inactive"
        ]
        assert sorted(layout.hole_bytes[layout.hole_is_whole].tolist()) == sorted(whole)
