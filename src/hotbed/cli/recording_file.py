"""What became of a recording of `hotbed record`: the file rewritten compactly, and what is said of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from hotbed.errors import TraceError
from hotbed.trace import load_devices
from hotbed.trace.compaction import write_compact
from hotbed.trace.overview import overview
from hotbed.units import format_size

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Trace

_SCHEMA = 1


def compacted(path: Path) -> list[Trace]:
    """What was recorded, with the file rewritten; nothing where the program used no GPU."""
    try:
        traces = load_devices(path)
    except TraceError:
        return []
    write_compact(path, traces)
    return traces


def line(path: Path, traces: list[Trace]) -> str:
    if not traces:
        return (
            f"{path}: nothing was recorded, since the program did not use the GPU, ended too early, or had the backend "
            "cudaMallocAsync, of which torch keeps no history"
        )
    found = overview(traces[0])
    steps = sum(step.phase == "train" for step in traces[0].recorded.steps) if traces[0].recorded else 0
    peak = found.peak_reserved.size_bytes if found.peak_reserved else found.final_reserved_bytes
    return (
        f"{path}: {found.events} events, {steps} training steps, peak {format_size(peak)} reserved; "
        f"next: hotbed report {shlex.quote(str(path))}"
    )


def to_json(path: Path, status: int, traces: list[Trace]) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "file": str(path) if traces else None,
        "script_exit_code": status,
        "devices": [
            {
                **overview(trace).to_json(),
                "overhead_seconds": trace.recorded.overhead_seconds if trace.recorded else None,
                "complete": trace.recorded.complete if trace.recorded else None,
            }
            for trace in traces
        ],
    }
