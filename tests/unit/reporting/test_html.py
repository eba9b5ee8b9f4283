"""The HTML page: what is packed comes back, what a trace says stays text, and nothing is loaded."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.cli.report_file import write_report
from hotbed.findings.case import Case
from hotbed.reporting.html.document import document
from hotbed.reporting.html.packing import packed
from hotbed.reporting.html.page import page
from hotbed.trace import Frame, load_trace
from hotbed.trace.compaction import write_compact
from tests.unit.invented import ALLOC, GROW, MIB, freed, trace_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from hotbed.trace import Trace

HOSTILE = "</script><img src=x onerror=alert(1)>"


def unpacked(text: str) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """What packing.packed put into `text`, as the page reads it."""
    raw = zlib.decompress(base64.b64decode(text), -15)
    length = int.from_bytes(raw[:4], "little")
    header, at = json.loads(raw[4 : 4 + length]), 4 + length
    columns = {}
    for name, count, width in header["columns"]:
        planes = np.frombuffer(raw, np.uint8, count * width, at).reshape(width, count)
        columns[name] = ((planes.astype(np.int64) << (8 * np.arange(width)[:, None])).sum(0) - 1).tolist()
        at += count * width
    return header, columns


def test_packed_columns_come_back() -> None:
    columns = {
        "a": np.array([-1, 0, 255, 70000]),
        "b": np.array([0x7F0000000200, 5], np.uint64),
        "c": np.array([]),
    }
    header, found = unpacked(packed({"x": "ü"}, columns))
    assert header["x"] == "ü"
    assert found == {"a": [-1, 0, 255, 70000], "b": [0x7F0000000200, 5], "c": []}


def hostile() -> Trace:
    trace = trace_of([(GROW, 0x1000, 20 * MIB), (ALLOC, 0x1000, MIB), *freed(0x1000, MIB)], source=HOSTILE)
    events = replace(
        trace.events, stack=np.array([-1, 0, 0, 0], np.int32), category=np.array([-1, 0, 0, 0], np.int32)
    )
    return replace(
        trace, events=events, stacks=((Frame(HOSTILE, 1, HOSTILE),),), strings=(HOSTILE,), settings=HOSTILE
    )


def test_names_of_a_trace_never_become_markup() -> None:
    text = page(document(Case(hostile()), [], HOSTILE))
    assert HOSTILE not in text
    assert "<img" not in text
    assert "&lt;img" in text


def test_the_page_forbids_all_that_is_not_its_own_script_and_style() -> None:
    text = page(document(Case(hostile()), [], "x"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r"""(?:src|href|url\()\s*=?\s*["'(]?(?:https?:)?//""", text)


def test_a_long_trace_keeps_the_events_around_its_peak_and_says_so(data: Path) -> None:
    case = Case(load_trace(data / "h200/resnet50.record.pickle.xz"))
    made = document(case, [], "x", most_events=4096)
    first, end = made.header["window"]
    assert first <= case.reserved_peak - 1 < end
    assert end - first <= 4096
    assert "25,930 events" in made.header["thinned"]
    high = made.columns["outline_reserved_high"]
    assert high.max() == case.reserved_at(case.reserved_peak)


def test_a_page_that_would_be_too_large_holds_fewer_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotbed.cli.report_file._MOST_BYTES", 100_000)
    monkeypatch.setattr("hotbed.cli.report_file._FEWEST_EVENTS", 1 << 10)
    monkeypatch.setattr("hotbed.cli.report_file.MOST_EVENTS", 1 << 14)
    random = np.random.default_rng(0)
    sizes = random.integers(1, 1 << 30, 16_000).tolist()
    trace = trace_of([(ALLOC, 0x1000 + (place << 32), size) for place, size in enumerate(sizes)])
    write_compact(tmp_path / "x.hbt", [trace])
    header, _ = write_report(tmp_path / "x.hbt", tmp_path / "x.html", None, (), None)
    first, end = header["window"]
    assert end - first < 16_000
    assert "16,000 events" in header["thinned"]
