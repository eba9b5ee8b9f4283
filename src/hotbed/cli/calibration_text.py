"""Text of a calibration: what driver calls cost, the layout of the card, and what libraries take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotbed.units import format_mib

if TYPE_CHECKING:
    from rich.console import RenderableType


def calibration_text(table: dict[str, Any]) -> RenderableType:
    """A row for each driver call, and a line for what else was measured."""
    lines = []
    if "layout" in table:
        sms = " ".join(map(str, table["layout"]["sms_per_gpc"]))
        lines.append(f"SMs per GPC: {sms} ({table['layout']['method']})")
    if "growth" in table:
        grown = (f"{use} {format_mib(size)}" for use, size in table["growth"]["added_bytes"].items() if size)
        lines.append(f"beside the allocator, torch {table['growth']['torch_version']}: {', '.join(grown)}")
    return Group(_costs(table), *map(Text, lines))


def _costs(table: dict[str, Any]) -> Table:
    context = table["context"].get("context_bytes")
    taken = "N/A" if context is None else format_mib(context)
    title = f"{table['gpu']}: context {taken} ({table['context']['method']})"
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("call", "us a call", "us a MiB more", "at 20 MiB: median", "90 % below"):
        shown.add_column(heading, justify="left" if heading == "call" else "right")
    at_20 = {row["call"]: row for row in table["samples"] if row["mode"] == "burst" and row["size_mib"] == 20}
    for call, cost in table["calls"].items():
        seen = at_20.get(call)
        times = (f"{seen['median_us']:.1f}", f"{seen['p90_us']:.1f}") if seen else ("N/A", "N/A")
        shown.add_row(call, f"{cost['base_us']:.1f}", f"{cost['us_per_mib']:.3f}", *times)
    return shown
