"""Text of a curve of cadences: what emptying the cache costs and saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotbed.units import format_size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotbed.findings.cadence import Curve, Point

_NARROW = 0.01
"""A range this narrow, by its upper end, is not worth showing."""
_BOUND = {
    "host": "the host is what a step waits for: each cudaMalloc makes it longer",
    "device": "the device is what a step waits for: a call costs the time in which it idles, cudaMalloc next to nothing",
    "unknown": "whether it waits for the host or the device is not known",
}


def cadence_text(curve: Curve) -> RenderableType:
    """A table with a row for each cadence, and what it rests on."""
    table = Table(box=None, pad_edge=False)
    table.add_column("empty_cache()")
    for name in ("ms a step", "peak reserved", "driver calls a step", "ms in them"):
        table.add_column(name, justify="right")
    for point in curve.points:
        table.add_row(
            _cadence(point),
            _time(point),
            format_size(point.peak_reserved_bytes),
            f"{point.driver_calls_per_step:.1f}",
            f"{point.driver_ms:.2f}",
        )
    notes = [
        f"{curve.steps} steps; {_BOUND[curve.bound]}",
        f"costs of calls: {curve.costs_of}",
    ]
    if curve.wait_ms is not None:
        notes.append(
            f"a call, as recorded: {curve.wait_ms:.1f} ms of waiting for the device, {curve.returning_ms:.1f} of giving memory"
            f" back, {curve.taking_ms:.1f} of taking it again"
        )
    elif any(point.step_low_ms for point in curve.points):
        notes.append(
            "no calls were recorded, so that how long one waits for the device is not known: from not at all to as long as a"
            " step; a recording with three calls or more tells"
        )
    else:
        notes.append("the trace has no times: only the driver's calls are known")
    return Group(table, *(Text(note, style="dim") for note in notes))


def _time(point: Point) -> str:
    if point.step_low_ms is None or point.step_high_ms is None:
        return "?"
    span = f"{point.step_low_ms:.1f} to {point.step_high_ms:.1f}"
    if point.step_ms is None:
        return span
    narrow = point.step_high_ms - point.step_low_ms < _NARROW * point.step_high_ms
    return f"{point.step_ms:.1f}" if narrow else f"{point.step_ms:.1f} ({span})"


def _cadence(point: Point) -> str:
    if point.every <= 1:
        return "every step" if point.every else "never"
    return f"every {point.every} steps"
