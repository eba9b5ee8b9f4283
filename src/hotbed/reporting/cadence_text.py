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

_BOUND = {
    "host": "the host is what a step waits for: each cudaMalloc makes it longer",
    "device": "the device is what a step waits for: a call costs the time in which it idles, cudaMalloc next to nothing",
    "unknown": "the trace has no times: only the driver's calls are known",
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
            "?" if point.step_ms is None else f"{point.step_ms:.1f}",
            format_size(point.peak_reserved_bytes),
            f"{point.driver_calls_per_step:.1f}",
            f"{point.driver_ms:.2f}",
        )
    notes = [
        f"{curve.steps} steps; {_BOUND[curve.bound]}",
        f"costs of calls: {curve.costs_of}",
    ]
    if not curve.recorded_calls and curve.bound == "host":
        notes.append(
            "not in it: what is left to do for the device when a call begins, at most a few kernels here"
        )
    return Group(table, *(Text(note, style="dim") for note in notes))


def _cadence(point: Point) -> str:
    if point.every <= 1:
        return "every step" if point.every else "never"
    return f"every {point.every} steps"
