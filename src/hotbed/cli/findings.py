"""`hotbed findings`: what a trace shows, with sizes, lines, evidence and what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hotbed.errors import UsageError

if TYPE_CHECKING:
    from hotbed.findings.finding import Finding

SCHEMA = 1
EPILOG = """\b
Examples:
  hotbed findings run.hbt
  hotbed findings snapshot.pickle --only fragmentation --only storm
  hotbed findings run.rank0.hbt run.rank1.hbt --json | jq '.findings[].code'
  hotbed findings --oom "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ..."
  python train.py 2>&1 | hotbed findings --oom -
"""


@click.command(epilog=EPILOG)
@click.argument("traces", nargs=-1, type=click.Path(path_type=Path))
@click.option("--only", multiple=True, metavar="GROUP", help="Only findings of this group; repeatable.")
@click.option(
    "--device", type=click.IntRange(min=0), help="Device of the traces.  [default: the one with most events]"
)
@click.option(
    "--tune", "tuned", is_flag=True, help="Search what other settings would save of fragmentation: slow."
)
@click.option(
    "--oom",
    metavar="TEXT",
    help="Explain this out-of-memory message instead of a trace; - reads it from stdin.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: schema, source, findings.")
def command(
    traces: tuple[Path, ...],
    only: tuple[str, ...],
    device: int | None,
    tuned: bool,
    oom: str | None,
    as_json: bool,
) -> int:
    """Say what recorded TRACES (torch snapshots or .hbt files) show: who holds the peak, what is lost, what to change.

    Several files are taken as the ranks of one run. Exit status 0: nothing to act on; 1: there are problems.
    """
    if (oom is None) == (not traces):
        raise UsageError(
            "name one or more traces, or give an error message with --oom", hint="hotbed findings --help"
        )
    found = _explained(oom) if oom is not None else _examined(traces, only, device, tuned=tuned)
    _print(found, [str(path) for path in traces], as_json=as_json)
    return 1 if any(finding.severity == "problem" for finding in found) else 0


def _explained(text: str) -> list[Finding]:
    from hotbed.findings.oom_text import explain

    return [explain(sys.stdin.read() if text == "-" else text)]


def _examined(
    traces: tuple[Path, ...], only: tuple[str, ...], device: int | None, *, tuned: bool
) -> list[Finding]:
    from hotbed.findings.looking import examine
    from hotbed.trace import load_trace

    return examine([load_trace(path, device) for path in traces], only, tuned=tuned)


def _print(found: list[Finding], sources: list[str], *, as_json: bool) -> None:
    from hotbed.cli.printer import print_json, show
    from hotbed.reporting.findings_text import findings_text

    if as_json:
        listed = [finding.to_json() for finding in found]
        print_json({"schema": SCHEMA, "source": sources, "findings": listed})
    else:
        show(findings_text(found))
