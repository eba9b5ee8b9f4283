"""Traces of the shipped H200 snapshots against what the H200 counted while they were recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hotbed.trace import Action, load_trace
from hotbed.trace.checking import check
from hotbed.trace.overview import overview

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "bert_large",
    "bert_varlen",
    "detection",
    "empty_cache_loop",
    "graphs",
    "kv_serving",
    "leak",
    "llama_ckpt",
    "resnet50",
    "streams",
    "token_budget",
    "unet_mixed",
]


@pytest.fixture(scope="module")
def counters(data: Path) -> dict[str, dict[str, Any]]:
    """Program → torch.cuda.memory_stats() at the end of the run whose snapshot is shipped."""
    lines = (data / "h200" / "measured.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["tag"] == "record"]
    return {row["name"]: row["stats"] for row in reversed(rows)}


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_has_the_events_and_peaks_that_the_gpu_counted(
    name: str, data: Path, counters: dict[str, dict[str, Any]]
) -> None:
    trace = load_trace(data / "h200" / f"{name}.record.pickle.xz")
    counted = counters[name]
    actions = np.bincount(trace.events.action, minlength=len(Action))
    asked = int(trace.events.size[trace.events.action == Action.ALLOC].sum())
    assert actions[Action.ALLOC] == counted["allocation.all.allocated"]
    assert actions[Action.SEGMENT_ALLOC] == counted["num_device_alloc"]
    assert actions[Action.SEGMENT_FREE] == counted["num_device_free"]
    assert asked == counted["requested_bytes.all.allocated"]
    found = overview(trace)
    assert found.peak_requested is not None
    assert found.peak_reserved is not None
    assert found.peak_requested.size_bytes == counted["requested_bytes.all.peak"]
    assert found.peak_reserved.size_bytes == counted["reserved_bytes.all.peak"]
    assert (trace.missing, trace.initial_segments, trace.other_devices) == ((), (), ())


@pytest.mark.parametrize("name", NAMES)
def test_the_events_of_a_real_trace_lead_to_its_final_map(name: str, data: Path) -> None:
    assert check([load_trace(data / "h200" / f"{name}.record.pickle.xz")]).problems == ()


def test_captured_graphs_keep_their_private_pools(data: Path) -> None:
    trace = load_trace(data / "h200" / "graphs.record.pickle.xz")
    assert trace.pools == ((0, 0), (1, 0), (2, 0), (3, 0))
    events = trace.events
    for segment in trace.segments:
        for block in segment.blocks:
            if block.state == "active_allocated":
                (found,) = np.flatnonzero(
                    (events.address == block.address) & (events.action == Action.ALLOC)
                )[-1:]
                assert trace.pools[events.pool[found]] == segment.pool


def test_stacks_are_read_innermost_frame_first(data: Path) -> None:
    trace = load_trace(data / "h200" / "leak.frames.pickle.xz")
    stack = trace.stacks[trace.events.stack[0]]
    assert [(frame.name, frame.line) for frame in stack] == [("main", 148), ("<module>", 161)]
    assert all(frame.filename.endswith("workloads.py") for frame in stack)
