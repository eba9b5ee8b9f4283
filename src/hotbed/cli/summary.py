"""`hotbed summary`: what the memory at the end of a recording means, in words."""

from __future__ import annotations

from pathlib import Path

import click

EPILOG = """\b
Examples:
  hotbed summary snapshot.pickle
  hotbed summary run.hbt --device 1 --json
In a program or notebook: hotbed.summary()
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--device", type=click.IntRange(min=0), help="Which device.  [default: the one with most events]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(file: Path, device: int | None, as_json: bool) -> int:
    """Say what is allocated, reserved and free at the end of FILE (an .hbt file or torch memory snapshot), and whether to act.

    Exit status 0: nothing to do; 1: there is.
    """
    from hotbed.cli.printer import print_json, show
    from hotbed.findings.summing import summary_of
    from hotbed.reporting.summary_text import summary_text
    from hotbed.trace import load_trace

    found = summary_of(load_trace(file, device))
    if as_json:
        print_json(found.to_json())
    else:
        show(summary_text(found))
    return int(any(one.act for one in found.advice))
