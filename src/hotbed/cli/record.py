"""`hotbed record`: runs a program and records what its GPU memory is used for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  hotbed record train.py --lr 3e-4
  hotbed record -o run.hbt -m my.training --config small.yaml
  hotbed record --phantom --gpu rtx-4090 train.py
  torchrun --no-python --nproc-per-node 8 hotbed record -o run.hbt train.py
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option(
    "-o",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Record into this file.  [default: NAME.record.hbt here]",
)
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as in python -m.")
@click.option("--phantom", is_flag=True, help="Run it on a GPU that is not there.")
@click.option("--gpu", "gpu_name", metavar="NAME", help="Which GPU, with --phantom.  [default: h200]")
@click.option(
    "--gpus", type=click.IntRange(1, 64), default=1, show_default=True, help="How many, with --phantom."
)
@click.option(
    "--budget",
    type=click.FloatRange(0, 100, min_open=True),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Part of the time that reading torch's history may take.",
)
@click.option("--all", "whole", is_flag=True, help="Record every event, whatever it costs.")
@click.option(
    "--every", type=click.IntRange(min=1), metavar="N", help="Record one of N steps, budget or not."
)
@click.option(
    "--steps", type=click.IntRange(min=1), metavar="N", help="Stop after this many optimizer steps."
)
@click.option("--torch", "python", metavar="PYTHON", help="Interpreter that runs the program.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; the program's output goes to stderr."
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(**options: Any) -> int:
    """Run PROGRAM and record what its GPU memory is used for.

    PROGRAM is a Python script, with -m a module, or - for stdin; it runs unmodified, to its own end. Options stand
    before it, what follows is its own. Exit status: 0 done, 3 the program failed.
    """
    from hotbed.cli.recording import answer
    from hotbed.cli.recording_request import Request

    return answer(Request(**options))
