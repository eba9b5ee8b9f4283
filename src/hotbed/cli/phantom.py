"""`hotbed phantom`: runs programs on GPUs that are not there, and says what the phantom covers."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hotbed.gpu import Gpu

EPILOG = """\b
Examples:
  hotbed phantom run -- python train.py
  hotbed phantom run --gpu rtx4090 --gpus 2 -- torchrun --nproc-per-node 2 train.py
  hotbed phantom check --torch ~/env/bin/python
"""
gpu_option = click.option(
    "--gpu", "gpu_name", metavar="NAME", help="Which GPU (see hotbed gpus). [default: h200]"
)
gpus_option = click.option("--gpus", "count", default=1, show_default=True, help="How many, up to 64.")
total_option = click.option("--total", metavar="SIZE", help="Memory of each, instead of its own: 15GiB.")
others_option = click.option(
    "--others", metavar="SIZE", help="Memory of each that another process holds: 10GiB."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(epilog=EPILOG)
def command() -> None:
    """Run programs on GPUs that are not there.

    The real torch runs; kernels do nothing, memory behaves as on the GPU. Nothing outside the program changes.
    """


@command.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@gpu_option
@gpus_option
@total_option
@others_option
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    gpu_name: str | None, count: int, total: str | None, others: str | None, argv: tuple[str, ...]
) -> None:
    """Run a program on phantom GPUs; its exit status and signals are its own."""
    from hotbed.phantom.environment import environment, refuse_privileged
    from hotbed.units import parse_size

    held = parse_size(others) if others else 0
    child = environment(_gpu(gpu_name, total), count=count, context=True, others=held)
    refuse_privileged(argv[0], child)
    sys.stdout.flush()
    os.execvpe(argv[0], list(argv), child)


@command.command()
@click.option("--torch", "python", metavar="PYTHON", default=sys.executable, help="Look at this one's torch.")
@json_option
def check(python: str, as_json: bool) -> int:
    """Compare what an installed torch needs of CUDA with what the phantom has.

    Exit status 1 if the phantom lacks something that torch imports.
    """
    from hotbed.cli.phantom_text import coverage_text
    from hotbed.cli.printer import print_json, show
    from hotbed.phantom.coverage import coverage, torch_folder

    found = coverage(torch_folder(python))
    if as_json:
        print_json({"schema": 1, **asdict(found)})
    else:
        show(coverage_text(found))
    return 1 if found.uncovered else 0


@command.command()
@gpu_option
@gpus_option
@total_option
@json_option
def nvml(gpu_name: str | None, count: int, total: str | None, as_json: bool) -> None:
    """Show what NVML, and so nvidia-smi-like tools, would see on phantom GPUs."""
    from hotbed.cli.phantom_text import nvml_table
    from hotbed.cli.printer import print_json, show
    from hotbed.phantom.nvml import seen_by_nvml

    gpus = seen_by_nvml(_gpu(gpu_name, total), count)
    if as_json:
        print_json({"schema": 1, "gpus": [asdict(gpu) for gpu in gpus]})
    else:
        show(nvml_table(gpus))


def _gpu(name: str | None, total: str | None) -> Gpu:
    from hotbed.gpu import DEFAULT_GPU, find_gpu
    from hotbed.units import parse_size

    gpu = find_gpu(name or DEFAULT_GPU)
    return replace(gpu, total_bytes=parse_size(total), nvml_total_bytes=None) if total else gpu
