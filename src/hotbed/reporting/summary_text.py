"""Text of a summary: what each figure means, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotbed.units import format_size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotbed.trace.condition import Summary


def summary_text(summary: Summary) -> RenderableType:
    """A table of the figures, and the advice."""
    now = summary.condition
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column()
    for name, size, words in summary.lines:
        table.add_row(name, "" if size is None else format_size(size), words)
    head = f"device {now.device}" + ("" if now.name is None else f", {now.name}")
    todo = [
        Text(
            "act: " if one.act else "no need to act: ", style="bold red" if one.act else "bold green"
        ).append(one.text, style="not bold default")
        for one in summary.advice
    ]
    return Group(Text(head), table, *todo)
