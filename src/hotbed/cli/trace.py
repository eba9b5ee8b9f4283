"""`hotbed trace`: what a recorded trace is, as another file, and whether it can be true."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Group

    from hotbed.trace.model import Trace

FILE = click.argument("file", type=click.Path(path_type=Path))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
DEVICE = click.option("--device", type=click.IntRange(min=0), help="Which device, where a file has several.")


@click.group()
def command() -> None:
    """Show, convert and check recorded traces.

    FILE is a torch memory snapshot (pickle; plain, gzip, xz or zstd) or an .hbt trace. Nothing in it is executed.
    """


@command.command(epilog="\b\nExample:\n  hotbed trace show snapshot.pickle")
@FILE
@DEVICE
@JSON
def show(file: Path, device: int | None, as_json: bool) -> None:
    """Say what FILE is: events, peaks and when they were, segments, settings, and what is missing."""
    from hotbed.cli import printer
    from hotbed.trace import load_trace
    from hotbed.trace.overview import overview

    trace = load_trace(file, device)
    if as_json:
        printer.print_json({"file": str(file), **overview(trace).to_json()})
    else:
        printer.show(_page(file, trace))


@command.command(
    epilog="\b\nExamples:\n  hotbed trace convert snapshot.pickle snapshot.hbt\n  hotbed trace convert run.hbt run.json"
)
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--to",
    type=click.Choice(["hbt", "perfetto", "memory-viz", "csv", "parquet"]),
    help="What to write.  [default: by TARGET's name: .json, .pickle, .csv, .parquet, else hbt]",
)
@click.option("--force", is_flag=True, help="Replace TARGET if it exists.")
def convert(source: Path, target: Path, to: str | None, force: bool) -> None:
    """Write SOURCE with all its devices as a compact .hbt file, or for another tool."""
    from hotbed.cli import printer
    from hotbed.errors import UsageError
    from hotbed.trace import load_devices
    from hotbed.trace.exporting import kind_of, write_as
    from hotbed.units import format_size

    if target.exists() and not force:
        command = ["hotbed", "trace", "convert", "--force", str(source), str(target)]
        raise UsageError(f"{target} exists", hint=shlex.join(command))
    traces = load_devices(source)
    write_as(to or kind_of(target), target, traces)
    before, after = source.stat().st_size, target.stat().st_size
    events = sum(len(trace.events) for trace in traces)
    printer.note(f"{target}: {events} events, {format_size(after)} (was {format_size(before)})")


@command.command(epilog="\b\nExample:\n  hotbed trace check snapshot.pickle")
@FILE
@DEVICE
@JSON
def check(file: Path, device: int | None, as_json: bool) -> int:
    """Check that FILE can be true: checksums, pairs, overlaps, and that its events lead to its final map.

    One line for each problem; exit status 1 if there is any.
    """
    from hotbed.cli import printer
    from hotbed.trace import load_devices, load_trace
    from hotbed.trace.checking import check as check_traces
    from hotbed.trace.loading import file_defects

    traces = load_devices(file) if device is None else [load_trace(file, device)]
    report = check_traces(traces, file_defects(file))
    if as_json:
        printer.print_json({"file": str(file), **report.to_json()})
    elif report.problems:
        click.echo("\n".join(report.lines()))
    else:
        printer.note(f"{file}: no problem in {sum(len(trace.events) for trace in traces)} events")
    return 1 if report.problems else 0


def _page(file: Path, trace: Trace) -> Group:
    """The figures as a table, and the timeline as rows of bars."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from hotbed.reporting.bars import curve_bars
    from hotbed.trace.overview import curves, overview
    from hotbed.trace.wording import rows

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    found, drawn = overview(trace), curves(trace)
    for name, value in [("file", str(file)), *rows(found)]:
        table.add_row(name, Text(value))
    top = int(drawn.reserved.max(initial=0))
    for name, curve in (("reserved", drawn.reserved), ("requested", drawn.requested)):
        table.add_row(f"{name} →", Text(curve_bars(curve, top)))
    return Group(table, *(Text(f"missing: {sentence}") for sentence in found.missing))
