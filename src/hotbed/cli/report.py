"""`hotbed report`: a trace as one HTML page, and the most important findings in the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hotbed.findings.finding import Finding

EPILOG = """\b
Examples:
  hotbed report run.hbt
  hotbed report snapshot.pickle -o report.html --open
"""

_MOST = 3
"""findings that the terminal shows; the page has all"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="The page.  [default: FILE's name + .html, here]"
)
@click.option("--device", type=click.IntRange(min=0), help="Which device, where a file has several.")
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@click.option("--force", is_flag=True, help="Replace a file that hotbed did not write.")
@click.option("--json", "as_json", is_flag=True, help="Print what the page is about as one JSON object.")
def command(
    file: Path, out: Path | None, device: int | None, open_it: bool, force: bool, as_json: bool
) -> None:
    """Write FILE, a trace or torch memory snapshot, as one HTML page that needs no server and no network."""
    from hotbed.cli import printer
    from hotbed.files import replacing
    from hotbed.findings.case import Case
    from hotbed.findings.looking import examine
    from hotbed.reporting.findings_text import findings_text
    from hotbed.reporting.html.document import document
    from hotbed.reporting.html.page import page
    from hotbed.trace import load_trace

    target = out or Path(f"{file.name}.html")
    if not force:
        _refuse_overwrite(target, file)
    case = Case(load_trace(file, device))
    found = examine([case.trace])
    made = document(case, found, file.name)
    text = page(made)
    with replacing(target) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))
    if as_json:
        printer.print_json({"report": str(target), **made.header})
    else:
        click.echo(str(target))
        printer.show(findings_text(_first(found)))
    if open_it:
        click.launch(target.absolute().as_uri())


def _first(found: list[Finding]) -> list[Finding]:
    """What to act on, most important first; where there is nothing, the first of the rest."""
    return [finding for finding in found if finding.severity == "problem"][:_MOST] or found[:1]


def _refuse_overwrite(target: Path, file: Path) -> None:
    """Raises UsageError where something is at `target` that is no report of ours."""
    from hotbed.errors import UsageError
    from hotbed.reporting.html.page import MADE_BY

    if not target.exists():
        return
    if target.is_file():
        with target.open("rb") as stream:
            if MADE_BY.encode() in stream.read(400):
                return
    raise UsageError(
        f"{target} exists, and hotbed did not write it",
        hint=shlex.join(["hotbed", "report", "--force", str(file), "-o", str(target)]),
    )
