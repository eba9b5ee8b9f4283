"""`hotbed guard`: runs a program with a guard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

EPILOG = """\b
Examples:
  hotbed guard train.py --lr 3e-4
  hotbed guard --policy skip -m my.training
In a program or notebook: hotbed.guard()
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option(
    "--policy",
    type=click.Choice(["warn", "skip", "off"]),
    default="warn",
    show_default=True,
    help="Warn of useless calls, skip them, or only count.",
)
@click.option(
    "--idle",
    type=click.FloatRange(0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Without work for so long, a call that was skipped is made up for.",
)
@click.option("--stacks", is_flag=True, help="Keep the stacks of what is live for a post-mortem: slower.")
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as in python -m.")
@click.option("--phantom", "on_phantom", is_flag=True, help="Run it on a GPU that is not there.")
@click.option("--gpu", "gpu_name", metavar="NAME", help="Which GPU, with --phantom.  [default: h200]")
@click.option("--torch", "python", metavar="PYTHON", help="Interpreter that runs the program.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    policy: str,
    idle: float,
    stacks: bool,
    module: bool,
    on_phantom: bool,
    gpu_name: str | None,
    python: str | None,
    program: str,
    arguments: tuple[str, ...],
) -> int:
    """Run PROGRAM and watch what empties its cache, what grows, and why it runs out of memory.

    It runs unmodified, to its own end; the exit status is its own. What the guard says goes to stderr.
    """
    from hotbed import recording
    from hotbed.cli.recording import refuse_without_gpu, wait
    from hotbed.errors import UsageError
    from hotbed.predicting.program import Program
    from hotbed.predicting.targets import script

    if gpu_name and not on_phantom:
        raise UsageError("--gpu is for --phantom: a real GPU is what it is")
    if not on_phantom:
        refuse_without_gpu("guard", program)
    found = Program("module", program, arguments, python) if module else script(program, arguments, python)
    job = {
        "task": "guarded_program",
        "kind": found.kind,
        "target": found.target,
        "arguments": found.arguments,
        "source": found.source,
        "guard": {"policy": policy, "idle": idle, "stacks": stacks},
    }
    with tempfile.TemporaryDirectory(prefix="hotbed-guard-") as folder:
        (Path(folder) / "job.json").write_text(json.dumps(job))
        boot = Path(recording.__file__).parent / "boot.py"
        argv = [found.python or sys.executable, str(boot), folder]
        status = wait(_start(argv, gpu_name, on_phantom=on_phantom))
    return status if status >= 0 else 128 - status


def _start(argv: list[str], gpu_name: str | None, *, on_phantom: bool) -> subprocess.Popen[bytes]:
    from hotbed import phantom

    sys.stdout.flush()
    return (
        phantom.start(argv, gpu=gpu_name, context=True)
        if on_phantom
        else subprocess.Popen(argv, env=os.environ)
    )
