"""What a trace amounts to: counts, time span, peaks and when they were, and a timeline to draw."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.trace.model import Events, Trace

    Bytes = npt.NDArray[np.int64]

SCHEMA: Final = 1
_MIN_BLOCK: Final = 512


@dataclass(frozen=True)
class Peak:
    """The largest value of a curve, at event `event` and `time_us` microseconds behind the first event (if timed)."""

    size_bytes: int
    event: int
    time_us: int | None


@dataclass(frozen=True)
class Overview:
    """The figures of one device. Peaks are None where there are no events.

    `requested` counts what programs asked for until the memory is reusable, as torch's requested_bytes does;
    `allocated` rounds each request to 512 bytes, torch's allocated_bytes may be up to 1 MiB higher for each large
    block that was not split; `reserved` is what was taken from the driver.
    """

    device: int
    other_devices: tuple[int, ...]
    events: int
    actions: dict[str, int]
    span_us: int | None
    peak_requested: Peak | None
    peak_allocated: Peak | None
    peak_reserved: Peak | None
    segments: int
    final_reserved_bytes: int
    final_active_bytes: int
    streams: tuple[int, ...]
    pools: tuple[tuple[int, int], ...]
    stacks: int
    steps: int | None
    out_of_memory: int
    settings: str
    torch_version: str | None
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain containers, with `schema`."""
        return {"schema": SCHEMA, **asdict(self)}


@dataclass(frozen=True)
class Curves:
    """Bytes behind each event, [n]; all from the map at the beginning on."""

    requested: Bytes
    allocated: Bytes
    reserved: Bytes


def curves(trace: Trace) -> Curves:
    """The three curves of `trace`, exact as far as the history goes."""
    events = trace.events
    rounded = np.maximum(_MIN_BLOCK, -(-events.size // _MIN_BLOCK) * _MIN_BLOCK)
    live = [
        block for segment in trace.initial_segments for block in segment.blocks if block.state != "inactive"
    ]
    allocated = sum(block.size_bytes for block in live if block.state == "active_allocated")
    reserved = sum(segment.size_bytes for segment in trace.initial_segments)
    taken, given = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP), (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
    requested = sum(block.requested_bytes for block in live)
    return Curves(
        requested=_curve(events, events.size, (Action.ALLOC,), (Action.FREE_COMPLETED,), requested),
        allocated=_curve(events, rounded, (Action.ALLOC,), (Action.FREE_REQUESTED,), allocated),
        reserved=_curve(events, events.size, taken, given, reserved),
    )


def _curve(
    events: Events, size: Bytes, up: tuple[Action, ...], down: tuple[Action, ...], start: int
) -> Bytes:
    sign = np.isin(events.action, up).astype(np.int64) - np.isin(events.action, down)
    return np.cumsum(sign * size) + start


def overview(trace: Trace) -> Overview:
    """The figures of `trace`."""
    events = trace.events
    found = curves(trace)
    counts = Counter(events.action.tolist())
    timed = events.time_us[events.time_us > 0]
    steps = events.step[events.step != NONE]
    return Overview(
        device=trace.device,
        other_devices=trace.other_devices,
        events=len(events),
        actions={action.name.lower(): counts[action] for action in Action if counts[action]},
        span_us=int(timed.max() - timed.min()) if len(timed) else None,
        peak_requested=_peak(events, found.requested),
        peak_allocated=_peak(events, found.allocated),
        peak_reserved=_peak(events, found.reserved),
        segments=len(trace.segments),
        final_reserved_bytes=sum(segment.size_bytes for segment in trace.segments),
        final_active_bytes=sum(
            block.size_bytes
            for segment in trace.segments
            for block in segment.blocks
            if block.state != "inactive"
        ),
        streams=tuple(np.unique(events.stream[np.isin(events.action, (Action.ALLOC,))]).tolist()),
        pools=trace.pools,
        stacks=len(trace.stacks),
        steps=int(steps.max() - steps.min()) + 1 if len(steps) else None,
        out_of_memory=counts[Action.OOM],
        settings=trace.settings,
        torch_version=trace.torch_version,
        missing=trace.missing,
    )


def _peak(events: Events, curve: Bytes) -> Peak | None:
    if not len(curve):
        return None
    at = int(curve.argmax())
    time_us = int(events.time_us[at])
    return Peak(
        int(curve[at]), at, time_us - int(events.time_us[0]) if time_us and events.time_us[0] else None
    )


def timeline(curve: Bytes, width: int) -> list[int]:
    """The highest value of `curve` in each of `width` equal stretches of events (fewer for a shorter curve)."""
    if not len(curve):
        return []
    edges = np.linspace(0, len(curve), min(width, len(curve)), endpoint=False).astype(np.int64)
    return [int(value) for value in np.maximum.reduceat(curve, edges)]
