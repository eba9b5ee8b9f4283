"""`hotbed report`: a trace as one HTML page, and the most important findings in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hotbed.findings.finding import Finding

EPILOG = """\b
Examples:
  hotbed report run.hbt
  hotbed report snapshot.pickle -o report.html --open
  hotbed report after.hbt --against before.hbt
  hotbed report run.hbt --settings "" --settings expandable_segments:True
  hotbed report --oom "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of …"
"""
_MOST = 3
"""findings that the terminal shows; the page has all"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="The page.  [default: FILE's name + .html, here]"
)
@click.option(
    "--against", type=click.Path(path_type=Path), help="Another run to compare FILE with; it comes first."
)
@click.option("--settings", multiple=True, metavar="S", help="Two allocator settings to compare by replay.")
@click.option("--device", type=click.IntRange(min=0), help="Which device, where a file has several.")
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@click.option("--force", is_flag=True, help="Replace a file that hotbed did not write.")
@click.option("--json", "as_json", is_flag=True, help="Print what the page is about as one JSON object.")
@click.option("--oom", metavar="TEXT", help="Explain an out-of-memory message alone; - reads stdin. No page.")
def command(
    file: Path | None,
    out: Path | None,
    against: Path | None,
    settings: tuple[str, ...],
    device: int | None,
    open_it: bool,
    force: bool,
    as_json: bool,
    oom: str | None,
) -> None:
    """Write FILE, a trace or torch memory snapshot, as one HTML page that needs no server and no network."""
    if oom is not None:
        _explain(sys.stdin.read() if oom == "-" else oom, as_json)
        return
    if file is None:
        raise click.UsageError("give a FILE, or --oom TEXT")
    if len(settings) not in (0, 2) or (settings and against):
        raise click.UsageError("compare with one other run (--against) or give --settings twice")
    from hotbed.cli.report_file import refuse_overwrite, write_report

    target = out or Path(f"{file.name}.html")
    if not force:
        refuse_overwrite(target, file)
    header, found = write_report(file, target, against, settings, device)
    _tell(target, header, found, as_json)
    if open_it:
        click.launch(target.absolute().as_uri())


def _tell(target: Path, header: dict[str, Any], found: list[Finding], as_json: bool) -> None:
    """The page's path, and what to act on, most important first; where there is nothing, the first of the rest."""
    from hotbed.cli import printer
    from hotbed.reporting.findings_text import findings_text

    if as_json:
        printer.print_json({"report": str(target), **header})
    else:
        click.echo(str(target))
        printer.show(findings_text([f for f in found if f.severity == "problem"][:_MOST] or found[:1]))


def _explain(text: str, as_json: bool) -> None:
    from hotbed.cli import printer
    from hotbed.findings.oom_text import explain
    from hotbed.reporting.findings_text import findings_text

    found = explain(text)
    if as_json:
        printer.print_json(found.to_json())
    else:
        printer.show(findings_text([found]))
