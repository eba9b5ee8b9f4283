"""Traces as files of other tools: what they hold is what the trace holds."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.unit.invented import ALLOC, GROW, MIB, OOM, trace_of

from hotbed.errors import UsageError
from hotbed.trace import Action, load_devices, load_trace
from hotbed.trace.exporting import kind_of, write_as
from hotbed.trace.overview import curves, overview
from hotbed.trace.recorded import CacheCall, Recorded, Step

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Trace

SNAPSHOTS = (
    "h200/leak.frames.pickle.xz",
    "h200/streams.record.pickle.xz",
    "h200/graphs.record.pickle.xz",
    "made/every_kind.pickle",
)


def assert_equal(one: Trace, other: Trace) -> None:
    """Equal but for the name of the file."""
    for name in one.events.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one.events, name), getattr(other.events, name), name)
    assert replace(one, source="", events=other.events) == replace(other, source="")


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_that_is_written_again_reads_the_same(data: Path, tmp_path: Path, name: str) -> None:
    traces = load_devices(data / name)
    write_as("memory-viz", tmp_path / "again.pickle", traces)
    for before, after in zip(traces, load_devices(tmp_path / "again.pickle"), strict=True):
        assert_equal(before, after)


def test_perfetto_has_the_peaks_the_steps_and_the_errors(tmp_path: Path) -> None:
    trace = trace_of([(GROW, 0x1000, 20 * MIB), (ALLOC, 0x1000, 3 * MIB), (OOM, 77, 90 * MIB)])
    step = Step("train", 4, 0, 3, 1, 3)
    call = CacheCall("empty_cache", None, 2, 0.5, 2, 4, 1, 1, 20 * MIB, 20 * MIB)
    write_as(
        "perfetto", tmp_path / "x.json", [replace(trace, recorded=Recorded(steps=(step,), calls=(call,)))]
    )
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    levels = {(event["name"], event["ts"]): event["args"]["bytes"] for event in events if event["ph"] == "C"}
    assert levels == {("allocated", 1): 0, ("allocated", 2): 3 * MIB, ("reserved", 1): 20 * MIB}
    slices = {event["name"]: (event["ts"], event["dur"]) for event in events if event["ph"] == "X"}
    assert slices == {"step 4": (1, 2), "empty_cache": (2, 500_000)}
    (mark,) = [event for event in events if event["ph"] == "i"]
    assert (mark["ts"], mark["args"]) == (3, {"requested_bytes": 90 * MIB, "free_bytes": 77})


def test_csv_has_a_row_for_each_event(data: Path, tmp_path: Path) -> None:
    trace = load_trace(data / SNAPSHOTS[0])
    write_as("csv", tmp_path / "x.csv", [trace])
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["allocated_bytes"]) for row in rows] == curves(trace).allocated.tolist()
    assert max(int(row["reserved_bytes"]) for row in rows) == overview(trace).peak_reserved.size_bytes  # type: ignore[union-attr]
    row = rows[int(np.flatnonzero(trace.events.stack >= 0)[-1])]
    frame = trace.stacks[int(trace.events.stack[int(row["event"])])][0]
    assert row["action"] == Action(int(trace.events.action[int(row["event"])])).name.lower()
    assert row["stack"].startswith(f"{frame.filename}:{frame.line} {frame.name}")


def test_parquet_without_pyarrow_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("hotbed.trace.exporting.rows.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pyarrow") as told:
        write_as("parquet", tmp_path / "x.parquet", [trace_of([])])
    assert "pip install pyarrow" in str(told.value.hint)
    assert not (tmp_path / "x.parquet").exists()


def test_the_name_of_the_file_chooses_the_kind() -> None:
    kinds = [kind_of(name) for name in ("a.json", "a.PICKLE", "a.csv", "a.parquet", "a.hbt", "a")]
    assert kinds == ["perfetto", "memory-viz", "csv", "parquet", "hbt", "hbt"]
