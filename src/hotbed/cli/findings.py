"""`hotbed findings`: what a trace shows, with sizes, lines, evidence and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hotbed.findings.finding import Finding

SCHEMA = 1
EPILOG = """\b
Examples:
  hotbed findings run.hbt
  hotbed findings snapshot.pickle --only fragmentation --only storm
  hotbed findings run.rank0.hbt run.rank1.hbt --json | jq '.findings[].code'
"""


@click.command(epilog=EPILOG)
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--only", multiple=True, metavar="GROUP", help="Only findings of this group; repeatable.")
@click.option(
    "--device", type=click.IntRange(min=0), help="Device of the traces.  [default: the one with most events]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: schema, source, findings.")
def command(traces: tuple[Path, ...], only: tuple[str, ...], device: int | None, as_json: bool) -> int:
    """Say what recorded TRACES (torch snapshots or .hbt files) show: who holds the peak, what is lost, what to change.

    Several files are taken as the ranks of one run. Exit status 0: nothing to act on; 1: there are problems.
    """
    from hotbed.findings.looking import examine
    from hotbed.trace import load_trace

    found = examine([load_trace(path, device) for path in traces], only)
    _print(found, [str(path) for path in traces], as_json=as_json)
    return 1 if any(finding.severity == "problem" for finding in found) else 0


def _print(found: list[Finding], sources: list[str], *, as_json: bool) -> None:
    from hotbed.cli.printer import print_json, show
    from hotbed.reporting.findings_text import findings_text

    if as_json:
        listed = [finding.to_json() for finding in found]
        print_json({"schema": SCHEMA, "source": sources, "findings": listed})
    else:
        show(findings_text(found))
