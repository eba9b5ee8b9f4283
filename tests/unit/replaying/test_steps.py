"""Training steps read off the rise and fall of live memory."""

from __future__ import annotations

import pytest

from hotbed.replaying.steps import find_steps, live_bytes
from hotbed.trace import load_trace
from tests.unit.invented import ALLOC, MIB, freed, trace_of, training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def test_live_bytes_fall_when_a_free_is_requested() -> None:
    trace = trace_of([(ALLOC, 1, 700), (ALLOC, 2, 300), *freed(1, 700)])
    assert live_bytes(trace).tolist() == [700, 1000, 300, 300]


def test_steps_of_equal_shape_are_found() -> None:
    found = find_steps(training([64 * MIB] * 8))
    assert (len(found), found.source) == (8, "inferred")


def test_a_trace_without_swings_has_no_steps() -> None:
    found = find_steps(trace_of([(ALLOC, address, MIB) for address in range(1, 40)]))
    assert (len(found), found.source) == (0, "unknown")


@pytest.mark.parametrize(("name", "steps"), [("bert_large", 12), ("detection", 12), ("empty_cache_loop", 8)])
def test_steps_of_recorded_trainings(data: Path, name: str, steps: int) -> None:
    """The workloads ran 12 steps, empty_cache_loop 8 (ground-truth README)."""
    found = find_steps(load_trace(data / "h200" / f"{name}.record.pickle.xz"))
    assert len(found) == steps
    assert found.step_ms is not None


@pytest.mark.parametrize("name", ["resnet50", "detection"])
def test_a_long_trace_has_the_steps_that_all_its_points_show(
    data: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = load_trace(data / f"h200/{name}.record.pickle.xz")
    whole = find_steps(trace).starts
    monkeypatch.setattr("hotbed.replaying.steps._LOOKED_AT", len(trace.events) // 8)
    assert find_steps(trace).starts == whole
