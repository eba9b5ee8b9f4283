"""Text of replay outcomes: one in full, several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotbed.reporting.bars import curve_bars
from hotbed.units import format_mib, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from hotbed.replaying import Fragmentation, OomPoint, Outcome, Timeline


def outcome_text(outcome: Outcome) -> RenderableType:
    """Everything a person asks of one outcome: verdict, peaks, driver calls, what was unusable at the peak."""
    parts: list[RenderableType] = [Text(_headline(outcome), style="bold red" if outcome.oom else "bold")]
    if outcome.oom:
        parts.append(Text(_oom_words(outcome.oom)))
    parts.append(_figures(outcome))
    if outcome.timeline:
        parts.append(Text(_curve(outcome.timeline)))
    if outcome.fragmentation:
        parts.append(_fragmentation_table(outcome.fragmentation))
    parts += [
        Text(f"note: {note}") for note in (*([outcome.estimate] if outcome.estimate else []), *outcome.notes)
    ]
    return Group(*parts)


def _headline(outcome: Outcome) -> str:
    verdict = "OUT OF MEMORY" if outcome.out_of_memory else "fits"
    settings = outcome.settings or "default settings"
    cap = f", cap {format_mib(outcome.cap_bytes)}" if outcome.cap_bytes else ""
    where = f"{outcome.gpu} ({format_size(outcome.total_bytes)}), torch {outcome.torch_version}"
    return f"{verdict}: {settings}{cap} on {where}"


def _oom_words(oom: OomPoint) -> str:
    where = "before the trace" if oom.event is None else f"at event {oom.event} of {oom.events}"
    step = "" if oom.step is None else f", step {oom.step}"
    return (
        f"{where}{step}: {format_size(oom.requested_bytes)} requested with {format_size(oom.allocated_bytes)} "
        f"allocated and {format_size(oom.free_reserved_bytes)} reserved but of no use"
    )


def _figures(outcome: Outcome) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    cost = outcome.cost
    steps = f"{cost.steps} steps ({cost.steps_source})" if cost.steps > 1 else "the whole trace"
    for name, value in (
        ("peak reserved", format_mib(outcome.peak_reserved_bytes)),
        ("peak allocated", format_mib(outcome.peak_allocated_bytes)),
        ("peak requested", format_mib(outcome.peak_requested_bytes)),
        ("device mallocs, frees", f"{outcome.device_mallocs}, {outcome.device_frees}"),
        ("retries", str(outcome.alloc_retries)),
        ("driver calls", f"{cost.device_calls}, modelled at {cost.total_ms:.1f} ms over {steps}"),
        ("once settled", f"{cost.per_step_calls:.1f} calls and {cost.per_step_ms:.2f} ms a step"),
    ):
        table.add_row(name, value)
    return table


def _curve(timeline: Timeline) -> str:
    """Reserved and requested memory over the trace, one character a column, scaled to the peak."""
    top = max(timeline.reserved_bytes, default=0) or 1
    lines = []
    for name, values in (("reserved ", timeline.reserved_bytes), ("requested", timeline.requested_bytes)):
        lines.append(f"{name} {curve_bars(values, top)} {format_mib(max(values, default=0))}")
    return "\n".join(lines)


def _fragmentation_table(found: Fragmentation) -> RenderableType:
    title = (
        f"At the peak (event {found.event}), {format_size(found.request_bytes)} were requested while reserved "
        f"memory held, unusable for it:"
    )
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    for heading in ("free", "blocks", "largest", "why unusable"):
        table.add_column(heading, justify="left" if heading == "why unusable" else "right")
    for free in found.unusable:
        table.add_row(format_size(free.bytes), str(free.blocks), format_size(free.largest_bytes), free.reason)
    table.add_row(format_size(found.rounding_bytes), "", "", "rounding inside live blocks")
    return table


def comparison_text(outcomes: Sequence[Outcome]) -> RenderableType:
    """Several outcomes of one trace side by side, the first as the base."""
    table = Table(title=outcomes[0].source, title_justify="left", title_style="")
    for heading in (
        "torch",
        "settings",
        "cap",
        "peak reserved",
        "against first",
        "driver calls",
        "retries",
        "verdict",
    ):
        table.add_column(heading, justify="left" if heading in ("torch", "settings", "verdict") else "right")
    base = outcomes[0].peak_reserved_bytes or 1
    for outcome in outcomes:
        table.add_row(
            outcome.torch_version,
            outcome.settings.replace(",", ", ") or "(default)",
            format_mib(outcome.cap_bytes) if outcome.cap_bytes else "none",
            format_mib(outcome.peak_reserved_bytes) + (" ~" if outcome.estimate else ""),
            f"{100 * (outcome.peak_reserved_bytes / base - 1):+.1f} %",
            str(outcome.cost.device_calls),
            str(outcome.alloc_retries),
            "OUT OF MEMORY" if outcome.out_of_memory else "fits",
        )
    notes = dict.fromkeys(f"~ {outcome.estimate}" for outcome in outcomes if outcome.estimate)
    return Group(table, *(Text(note) for note in notes))
