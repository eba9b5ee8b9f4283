"""What the page shows, as plain containers and columns: facts, peaks, findings, stretches, markers, and the events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed import __version__
from hotbed.reporting.html.events import Window, event_columns
from hotbed.reporting.html.stacks import stack_columns
from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.findings.difference import Difference
    from hotbed.findings.finding import Finding
    from hotbed.trace import Frame

SCHEMA: Final = 1
MOST_EVENTS: Final = 1 << 20
"""So many events are drawn one by one; of a longer trace those around its highest reserved level."""
_BUCKETS: Final = 8192


@dataclass(frozen=True)
class Document:
    """`header` is what the page needs at once, and `--json` prints; `columns` the rest (see packing)."""

    header: dict[str, Any]
    columns: dict[str, npt.NDArray[Any]]


def document(
    case: Case,
    findings: Sequence[Finding],
    name: str,
    *,
    difference: Difference | None = None,
    notes: Sequence[str] = (),
    most_events: int = MOST_EVENTS,
) -> Document:
    """The report on `case`, called `name`; `notes` are what else the reader should know, in words."""
    window, bucket = _window(case, most_events)
    columns = event_columns(case, window)
    stacks = np.unique(np.concatenate((columns["siteStack"], columns["otherStack"])))
    texts, tree = stack_columns(case, stacks[stacks >= 0].tolist())
    header = {
        "schema": SCHEMA,
        "hotbed": __version__,
        "name": name,
        "facts": _facts(case),
        "peaks": _peaks(case),
        "findings": [finding.to_json() for finding in findings],
        "events": len(case.trace.events),
        "window": [window.first, window.end],
        "bucket": bucket,
        "begun": {"allocated": case.allocated_at(window.first), "reserved": case.reserved_at(window.first)},
        "time0": _first_time(case),
        "timeFirst": _time_at(case, window.first),
        "notes": list(notes),
        "difference": None if difference is None else _difference(difference),
        "thinned": _thinned(case, window, bucket),
        "categories": list(case.trace.strings)
        if case.by_category(case.allocations.live_at(case.peak))
        else [],
        "pools": [list(map(str, pool)) for pool in case.trace.pools],
        "steps": [_step(case, step) for step in case.steps],
        "stepsRecorded": case.steps_are_recorded,
        "calls": list(_calls(case)),
        "failures": [_failure(failure) for failure in case.recorded.failures],
        "gaps": [[gap.event, gap.bridged_events, gap.allocations] for gap in case.recorded.gaps],
        "texts": texts,
    }
    return Document(
        header, {**columns, **tree, **_samples(case), **(_outline(case, bucket) if bucket else {})}
    )


def _window(case: Case, most: int) -> tuple[Window, int]:
    """The events that are drawn one by one, and how many events make a bucket of the outline (0: none is needed)."""
    count = len(case.trace.events)
    if count <= most:
        return Window(0, count), 0
    bucket = 1 << max((count // _BUCKETS).bit_length(), 4)
    first = min(max(case.reserved_peak - most // 2, 0), count - most) // bucket * bucket
    return Window(first, min(first + most // bucket * bucket, count)), bucket


def _thinned(case: Case, window: Window, bucket: int) -> str | None:
    """What was left out so that the page stays small, in words."""
    if not bucket:
        return None
    count = len(case.trace.events)
    return (
        f"of {count:,} events, {window.first:,} to {window.end:,} (around the highest reserved level) are drawn one "
        f"by one; of the others each stretch of {bucket:,} by its highest and lowest level"
    )


def _facts(case: Case) -> dict[str, Any]:
    trace = case.trace
    return {
        "device": trace.device,
        "otherDevices": list(trace.other_devices),
        "deviceName": trace.device_info.name,
        "totalBytes": trace.device_info.total_bytes,
        "contextBytes": case.recorded.context_bytes,
        "torch": trace.torch_version,
        "settings": trace.settings,
        "rank": trace.rank,
        "missing": list(trace.missing),
        "recorded": trace.recorded is not None,
        "complete": case.recorded.complete,
    }


def _peaks(case: Case) -> dict[str, Any]:
    """Bytes, and the event behind which they were reached; `used` is the device's, by NVML."""
    used = [sample.used_bytes for sample in case.trace.nvml]
    return {
        "allocated": {"bytes": case.allocated_at(case.peak), "event": case.peak - 1},
        "reserved": {"bytes": case.reserved_at(case.reserved_peak), "event": case.reserved_peak - 1},
        "used": {"bytes": max(used) if used else None},
    }


def _first_time(case: Case) -> int:
    times = case.trace.events.time_us
    return int(times[0]) if len(times) else 0


def _time_at(case: Case, place: int) -> int:
    """Microseconds from the first event to the one at `place`."""
    times = case.trace.events.time_us
    return max(int(times[: place + 1].max(initial=0)) - _first_time(case), 0) if place < len(times) else 0


def _step(case: Case, step: Any) -> dict[str, Any]:
    return {
        "phase": step.phase,
        "number": step.number,
        "events": None if step.first_event is None else [step.first_event, step.end_event],
        "seconds": step.seconds,
        "peakAllocated": step.peak_allocated_bytes,
        "peakReserved": step.peak_reserved_bytes,
        "allocations": step.allocations,
        "deviceMallocs": step.device_mallocs,
        "retries": step.retries,
    }


def _calls(case: Case) -> Iterator[dict[str, Any]]:
    """Calls that gave memory back: as recorded, else those that the history shows."""
    if case.recorded.calls:
        for call in case.recorded.calls:
            yield {
                "kind": call.kind,
                "where": _place(call.where),
                "event": call.event,
                "seconds": call.seconds,
                "reserved": [call.reserved_before, call.reserved_after],
                "skipped": call.skipped,
            }
        return
    events = case.trace.events
    kept = np.flatnonzero(~np.isin(events.action, (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)))
    for event in case.empty_cache_events:
        where = case.line_of(int(events.stack[event]))
        behind = np.searchsorted(kept, event)
        end = int(kept[behind]) if behind < len(kept) else len(events)
        yield {
            "kind": "empty_cache",
            "where": _place(where),
            "event": event,
            "seconds": None,
            "reserved": [case.reserved_at(event), case.reserved_at(end)],
            "skipped": False,
        }


def _failure(failure: Any) -> dict[str, Any]:
    return {
        "event": failure.event,
        "where": _place(failure.where),
        "message": failure.message,
        "requested": failure.requested_bytes,
        "others": failure.others_bytes,
        "limit": failure.limit_bytes,
    }


def _place(frame: Frame | None) -> str | None:
    return None if frame is None else f"{frame.filename}:{frame.line}"


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "note": difference.note,
        "sides": [
            {
                "name": side.name,
                "at": [round(at, 6) for at in side.at],
                "allocated": list(side.allocated_bytes),
                "reserved": list(side.reserved_bytes),
            }
            for side in difference.sides
        ],
        "rows": [
            {"kind": row.kind, "name": row.name, "a": row.first_bytes, "b": row.second_bytes}
            for row in difference.rows
        ],
    }


def _samples(case: Case) -> dict[str, npt.NDArray[Any]]:
    """NVML: microseconds behind the first event, and bytes."""
    samples = case.trace.nvml
    return {
        "usedTime": np.array([max(sample.time_us - _first_time(case), 0) for sample in samples], np.int64),
        "usedBytes": np.array([sample.used_bytes for sample in samples], np.int64),
    }


def _outline(case: Case, bucket: int) -> dict[str, npt.NDArray[Any]]:
    """Lowest and highest levels of each `bucket` events, and the time at its beginning, for the whole trace."""
    starts = np.arange(0, len(case.trace.events), bucket)
    found = {}
    for name, curve in (("allocated", case.curves.allocated), ("reserved", case.curves.reserved)):
        found[f"outline_{name}_low"] = np.minimum.reduceat(curve, starts)
        found[f"outline_{name}_high"] = np.maximum.reduceat(curve, starts)
    times = np.maximum.accumulate(case.trace.events.time_us[starts]) - _first_time(case)
    return {**found, "outline_time": times.clip(0)}
