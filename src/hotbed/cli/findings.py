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
  hotbed findings snapshot.pickle --empty-cache-every 1,10,0
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
@click.option(
    "--empty-cache-every",
    "cadence",
    metavar="N,N,...",
    help="Say what emptying the cache after every N-th step would cost (0: never): 1,10,0. Replays one trace.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: schema, source, findings.")
def command(
    traces: tuple[Path, ...],
    only: tuple[str, ...],
    device: int | None,
    tuned: bool,
    oom: str | None,
    cadence: str | None,
    as_json: bool,
) -> int:
    """Say what recorded TRACES (torch snapshots or .hbt files) show: who holds the peak, what is lost, what to change.

    Several files are taken as the ranks of one run. Exit status 0: nothing to act on; 1: there are problems.
    """
    if (oom is None) == (not traces):
        raise UsageError(
            "name one or more traces, or give an error message with --oom", hint="hotbed findings --help"
        )
    if cadence is not None:
        return _weigh(traces, device, cadence, as_json=as_json)
    found = _explained(oom) if oom is not None else _examined(traces, only, device, tuned=tuned)
    _print(found, [str(path) for path in traces], as_json=as_json)
    return 1 if any(finding.severity == "problem" for finding in found) else 0


def _weigh(traces: tuple[Path, ...], device: int | None, text: str, *, as_json: bool) -> int:
    """Prints the curve of cadences of one trace."""
    from hotbed.cli.printer import print_json, show
    from hotbed.findings.cadence import cadences
    from hotbed.reporting.cadence_text import cadence_text
    from hotbed.trace import load_trace

    numbers = [part.strip() for part in text.split(",")]
    if len(traces) != 1 or not all(number.isdigit() for number in numbers):
        raise UsageError(
            "--empty-cache-every takes one trace, and numbers of steps", hint="--empty-cache-every 1,10,0"
        )
    curve = cadences(load_trace(traces[0], device), [int(number) for number in numbers])
    if as_json:
        print_json(curve.to_json())
    else:
        show(cadence_text(curve))
    return 0


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
