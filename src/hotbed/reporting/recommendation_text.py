"""Text of a recommendation: what to paste, what it saves and costs, and the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotbed.units import format_mib

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotbed.tuning import Choice, HeldOut, Margin, Recommendation

_FRONT_ROWS = 8


def recommendation_text(found: Recommendation, environment_name: str) -> RenderableType:
    """The answer first, then the evidence. `environment_name` is the variable that this torch reads."""
    parts: list[RenderableType] = [
        _summary(found),
        Text(""),
        # Not folded: a line to paste must stay one line.
        Text(_paste(found, environment_name), no_wrap=True, overflow="ignore"),
        Text(""),
        _front(found),
    ]
    if found.advice:
        parts += [Text(""), _advice(found)]
    if found.margin and found.held_out:
        parts += [Text(""), Text(_margin_words(found.margin, found.held_out))]
    parts += [Text(f"note: {note}") for note in _notes(found)]
    return Group(*parts)


def _summary(found: Recommendation) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "MiB", "over", "calls", "ms/step", "settings"):
        left = heading in ("", "settings")
        table.add_column(heading, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    table.add_row(
        "lower bound",
        _mib(found.lower_bound_bytes),
        "",
        "",
        "",
        "most bytes alive at once: no settings do better",
    )
    _add_choice(table, found, "today's default", found.default)
    _add_choice(table, found, "recommended", found.recommended)
    if found.recommended != found.without_cap:
        _add_choice(table, found, "best without a cap", found.without_cap)
    return table


def _add_choice(table: Table, found: Recommendation, name: str, choice: Choice) -> None:
    cap = f"  cap {format_mib(choice.cap_bytes)}" if choice.cap_bytes else ""
    table.add_row(
        name,
        _mib(choice.footprint_bytes),
        f"{100 * (choice.footprint_bytes / found.lower_bound_bytes - 1):+.1f} %",
        str(choice.device_calls),
        f"{choice.cost_ms_per_step:.2f}",
        _breakable(choice.label) + cap + ("" if choice.fits else "  OUT OF MEMORY"),
    )


def _breakable(settings: str) -> str:
    """`settings` with a blank after each comma, where lines may break; torch ignores blanks."""
    return settings.replace(",", ", ")


def _mib(size_bytes: int) -> str:
    return format_mib(size_bytes).removesuffix(" MiB")


def _paste(found: Recommendation, environment_name: str) -> str:
    choice = found.recommended
    if not choice.settings and not choice.cap_bytes:
        if found.interrupted:
            return "Interrupted before anything better than torch's default was found."
        return "Nothing to change: torch's default is the best choice for this trace."
    lines = [_saving(found) + " To use it:"]
    has_fraction = "per_process_memory_fraction" in found.environment_string
    if found.environment_string:
        card = f"   # a fraction of a {found.gpu}" if has_fraction else ""
        lines.append(f'  shell        export {environment_name}="{found.environment_string}"{card}')
    if found.python_line and not has_fraction:
        also = "and Python  " if found.environment_string else "Python      "
        lines.append(f"  {also} {found.python_line}")
    lines.append("  hotbed.toml  add --write hotbed.toml to this command")
    if choice.cap_bytes:
        lines.append(
            "A batch larger than any recorded one needs more than this cap; without a cap it would only grow."
        )
    return "\n".join(lines)


def _saving(found: Recommendation) -> str:
    if not found.default.fits:
        return f"The default runs out of memory on a {found.gpu}; this fits."
    share = 100 * found.saving_bytes / found.default.peak_reserved_bytes
    return f"Saves {format_mib(found.saving_bytes)} ({share:.1f} %) of what the default reserves."


def _front(found: Recommendation) -> Table:
    title = (
        "Memory against cost: what nothing found beats in both (MiB by exact replay, ms by the cost model)"
    )
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    for heading in ("MiB", "calls", "ms in all", "ms/step", "cap MiB", "settings"):
        left = heading == "settings"
        table.add_column(heading, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    for choice in _thinned(found.front):
        table.add_row(
            _mib(choice.peak_reserved_bytes),
            str(choice.device_calls),
            f"{choice.cost_ms_total:.1f}",
            f"{choice.cost_ms_per_step:.2f}",
            _mib(choice.cap_bytes) if choice.cap_bytes else "none",
            _breakable(choice.label),
        )
    return table


def _thinned(front: tuple[Choice, ...]) -> list[Choice]:
    """At most eight choices, both ends kept."""
    if len(front) <= _FRONT_ROWS:
        return list(front)
    return [front[round(place * (len(front) - 1) / (_FRONT_ROWS - 1))] for place in range(_FRONT_ROWS)]


def _advice(found: Recommendation) -> Table:
    table = Table(
        title="Common advice, on " + ("this trace" if len(found.sources) == 1 else found.sources[0]),
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
    )
    for heading in ("advice", "MiB", "verdict", "why"):
        table.add_column(heading, justify="right" if heading == "MiB" else "left", overflow="fold")
    for advice in found.advice:
        reserved = _mib(advice.peak_reserved_bytes) if advice.peak_reserved_bytes else "N/A"
        table.add_row(advice.advice, reserved, advice.verdict, advice.why)
    return table


def _margin_words(margin: Margin, held_out: HeldOut) -> str:
    lines = [
        f"The cap is {format_mib(margin.needed_bytes)} that the recorded run needs, plus a margin of "
        f"{format_mib(margin.total_bytes)}: {format_mib(margin.variants_bytes)} for the worst of "
        f"{margin.fitted_variants} other runs, {format_mib(margin.growth_bytes)} for growth over the steps "
        f"(the larger counts), {format_mib(margin.guard_bytes)} as guard.",
        _held_out_words(held_out),
    ]
    if held_out.fit_cap_bytes is not None:
        result = "fits" if held_out.fit_cap_held else "does not fit"
        part = f"first {held_out.fit_steps} steps" if held_out.fit_steps else "first two thirds of the trace"
        lines.append(
            f"Fitted on the {part} alone the cap would be {format_mib(held_out.fit_cap_bytes)}; "
            f"the whole trace {result} under it."
        )
    return "\n".join(lines)


def _held_out_words(held_out: HeldOut) -> str:
    if not held_out.runs:
        return f"Held out: {held_out.kind}."
    raised = (
        f"; the cap was raised by {format_mib(held_out.raised_bytes)} for the rest"
        if held_out.raised_bytes
        else ""
    )
    return (
        f"Held out: {held_out.fitted} of {held_out.runs} further runs ({held_out.kind}) fit at once{raised}."
    )


def _notes(found: Recommendation) -> list[str]:
    notes = list(found.notes)
    if found.interrupted:
        notes.append(
            "interrupted: the best of what was tried so far, without a cap; run it to the end for more"
        )
    if found.goal == "balanced" and found.budget_ms_per_step is not None:
        recorded = (
            f"the recorded {found.step_ms:.0f} ms" if found.step_ms else "100 ms, as the trace has no times"
        )
        notes.append(
            f"balanced spends at most {found.budget_ms_per_step:.2f} ms a step: 1 % of {recorded} "
            f"({found.steps_source} steps; without recording a step may be shorter), or what the default spends"
        )
    notes.append(f"cost model: {found.cost_source}; waiting for running kernels is not modelled")
    notes.append(
        f"{found.replays} replays in {found.seconds:.1f} s with torch {found.torch_version} on {found.gpu}"
    )
    return notes
