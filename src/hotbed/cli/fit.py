"""`hotbed fit`: what memory a program needs, and on which GPUs it has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hotbed.cli.options import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

EPILOG = """\b
Examples:
  hotbed fit train.py --lr 3e-4
  hotbed fit --gpu rtx-4090 --tune -m my.training --config small.yaml
  hotbed fit --max b=1..1024 --vary ckpt=0,1 train.py --batch-size {b} --ckpt {ckpt}
  hotbed fit --settings "" --settings expandable_segments:True train.py
  hotbed fit --budget memory.json --fail-over 5% train.py
"""
FILE = click.Path(dir_okay=False, path_type=Path)

_OPTIONS = (
    click.option("--gpu", metavar="NAME|FILE", default="h100-80", show_default=True,
                 help="A GPU of `hotbed gpus`, or a file of `hotbed calibrate`."),
    click.option("--gpus", type=click.IntRange(1, 64), default=1, show_default=True,
                 help="How many GPUs the program sees."),
    click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as in python -m."),
    click.option("--steps", type=click.IntRange(min=1), default=3, show_default=True,
                 help="Stop after this many optimizer steps."),
    click.option("--until", metavar="TEXT", help="Stop when the program prints TEXT."),
    click.option("--time-limit", type=click.FloatRange(min=1), metavar="SECONDS", default=600.0, show_default=True,
                 help="Stop then, and predict from what is known."),
    click.option("--host-limit", type=SIZE, metavar="SIZE", help="Stop if the program needs more host memory."),
    click.option("--settings", multiple=True, metavar="S",
                 help="Allocator settings; repeat to compare.  [default: environment, hotbed.toml]"),
    click.option("--tune", is_flag=True, help="Search allocator settings, as `hotbed tune` does."),
    click.option("--goal", type=click.Choice(["memory", "balanced", "speed"]), default="balanced",
                 show_default=True, help="Goal of --tune."),
    click.option("--max", "largest", multiple=True, metavar="b=1..1024",
                 help="Find the largest value for {b} in the arguments; b=8..1024:8 in steps of 8."),
    click.option("--vary", multiple=True, metavar="NAME=V,V", help="Try each value for {NAME}; repeatable."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of guessed values."),
    click.option("--seeds", type=click.IntRange(min=1), metavar="N",
                 help="Draw guesses with N seeds.  [default: 3 where sizes follow from them]"),
    click.option("--torch", "pythons", multiple=True, metavar="PYTHON",
                 help="Interpreter that runs the program; repeat to compare."),
    click.option("-o", "--trace-out", type=FILE, metavar="FILE",
                 help="Write the trace to this new file.  [default: NAME.fit.hbt here, replaced]"),
    click.option("--write", is_flag=True, help="Put what is needed into [needs] of hotbed.toml."),
    click.option("--budget", type=FILE, metavar="FILE", help="Compare the peaks with those of this JSON file."),
    click.option("--fail-over", metavar="PERCENT", help="Growth over the budget that is accepted.  [default: 0%]"),
    click.option("--update-budget", is_flag=True, help="Write the peaks to the budget file."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object a prediction and line."),
)  # fmt: skip


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@_with_options
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(**options: Any) -> int:
    """Run PROGRAM for a few steps on a GPU that is not there, and say what memory it needs.

    PROGRAM is a Python script, with -m a module, or - for stdin; it runs unmodified. Options stand before it, what
    follows is its own. Exit status: 0 it fits, 1 it does not, 3 the program failed.
    """
    from hotbed.cli.fit_request import Request
    from hotbed.cli.fitting import answer

    return answer(Request(**options))
