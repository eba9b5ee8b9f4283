"""Text of a search over arguments: the largest values that fit, or what each choice needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from hotbed.predicting.search import Largest, Probe


def largest_text(gpu: str, total_bytes: int, found: Sequence[Largest]) -> RenderableType:
    """The answer for each choice, and, where there is one choice, every run behind it."""
    parts: list[RenderableType] = []
    if len(found) == 1:
        one = found[0]
        parts += [Text(_answer(one, gpu), style="bold"), probes_text(gpu, total_bytes, one.probes)]
    else:
        parts.append(_choices_table(gpu, found))
    parts += [Text(f"note: {note}") for one in found for note in one.notes]
    return Group(*parts)


def probes_text(gpu: str, total_bytes: int, probes: Sequence[Probe]) -> Table:
    """A row for each run."""
    title = f"on {gpu} ({format_size(total_bytes)})"
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    for name, _ in probes[0].values:
        table.add_column(name, justify="right")
    for heading in ("peak live", "peak reserved", "device used", "needs at least"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for probe in probes:
        known = probe.smallest_bytes is not None
        sizes = (probe.peak_allocated_bytes, probe.peak_reserved_bytes, probe.device_used_bytes)
        table.add_row(
            *(value for _, value in probe.values),
            *(format_size(size) if known else "" for size in sizes),
            format_size(probe.smallest_bytes) if probe.smallest_bytes is not None else "",
            probe.verdict,
        )
    return table


def _answer(found: Largest, gpu: str) -> str:
    if found.value is None:
        return f"no {found.variable} that was tried fits {gpu}"
    beyond = (
        f"; {found.next_value} does not fit" if found.next_value is not None else ", the end of the range"
    )
    return f"{found.variable}={found.value} fits {gpu}{beyond}"


def _choices_table(gpu: str, found: Sequence[Largest]) -> Table:
    title = f"largest {found[0].variable} that fits {gpu}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name, _ in found[0].choice:
        table.add_column(name, justify="right")
    table.add_column(found[0].variable, justify="right")
    for heading in ("peak reserved", "device used"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("runs", justify="right")
    for one in found:
        probe = _probe_of(one)
        table.add_row(
            *(value for _, value in one.choice),
            "none" if one.value is None else str(one.value),
            format_size(probe.peak_reserved_bytes) if probe else "",
            format_size(probe.device_used_bytes) if probe else "",
            str(len(one.probes)),
        )
    return table


def _probe_of(found: Largest) -> Probe | None:
    """The run with the answer."""
    wanted = str(found.value)
    return next((probe for probe in found.probes if dict(probe.values)[found.variable] == wanted), None)
