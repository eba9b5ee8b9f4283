"""Writes traces as Chrome trace JSON, which ui.perfetto.dev opens: counters, steps and calls as slices, errors as marks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.files import replacing
from hotbed.trace.model import NONE, Action
from hotbed.trace.overview import curves

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from hotbed.trace.model import Trace


def write_perfetto(path: str | os.PathLike[str], traces: Sequence[Trace]) -> None:
    """Writes one process per device. Counters are the levels behind the last event of each microsecond. Raises as
    files.replacing."""
    with replacing(path) as out:
        out.write(b'{"displayTimeUnit":"ms","traceEvents":[')
        between = b"\n"
        for trace in traces:
            for event in _events(trace):
                out.write(
                    between
                    + json.dumps({"pid": trace.device, "tid": 0, **event}, separators=(",", ":")).encode()
                )
                between = b",\n"
        out.write(b"\n]}\n")


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    name = f"GPU {trace.device}" + (f" of rank {trace.rank}" if trace.rank is not None else "")
    yield {"ph": "M", "name": "process_name", "args": {"name": name}}
    yield from _counters(trace)
    yield from _steps(trace)
    yield from _recorded(trace)
    for sample in trace.nvml:
        yield {
            "ph": "C",
            "name": "used on the device",
            "ts": sample.time_us,
            "args": {"bytes": sample.used_bytes},
        }
    for index in np.flatnonzero(trace.events.action == Action.OOM).tolist():
        details = {
            "requested_bytes": int(trace.events.size[index]),
            "free_bytes": int(trace.events.address[index]),
        }
        yield {
            "ph": "i",
            "s": "p",
            "name": "out of memory",
            "ts": int(trace.events.time_us[index]),
            "args": details,
        }


def _counters(trace: Trace) -> Iterator[dict[str, Any]]:
    found, times = curves(trace), trace.events.time_us
    if not len(times):
        return
    last = np.append(times[1:] != times[:-1], True)
    for name, curve in (("allocated", found.allocated), ("reserved", found.reserved)):
        at, value = times[last], curve[last]
        changed = np.append(True, value[1:] != value[:-1])
        for time_us, level in zip(at[changed].tolist(), value[changed].tolist(), strict=True):
            yield {"ph": "C", "name": name, "ts": time_us, "args": {"bytes": level}}


def _steps(trace: Trace) -> Iterator[dict[str, Any]]:
    """As recorded, else by the step of each event."""
    if trace.recorded is not None and trace.recorded.steps:
        for step in trace.recorded.steps:
            name = f"step {step.number}" if step.phase == "train" else step.phase
            yield {"ph": "X", "name": name, "ts": step.begun_us, "dur": max(step.end_us - step.begun_us, 0)}
        return
    declared, times = trace.events.step, trace.events.time_us
    bounds = np.flatnonzero(np.diff(declared, prepend=NONE - 1, append=NONE - 1))
    for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if declared[first] != NONE:
            begun, ended = int(times[first]), int(times[end - 1])
            yield {"ph": "X", "name": f"step {declared[first]}", "ts": begun, "dur": max(ended - begun, 0)}


def _recorded(trace: Trace) -> Iterator[dict[str, Any]]:
    for call in trace.recorded.calls if trace.recorded else ():
        details = {
            "reserved_before": call.reserved_before,
            "reserved_after": call.reserved_after,
            "skipped": call.skipped,
        }
        yield {
            "ph": "X",
            "tid": 1,
            "name": call.kind,
            "ts": call.time_us,
            "dur": call.seconds * 1e6,
            "args": details,
        }
