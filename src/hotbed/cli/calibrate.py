"""`hotbed calibrate`: measures on a GPU of this machine what costs and predictions rest on."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from hotbed import __version__
from hotbed.errors import PlatformError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.gpu.clusters import Clusters
    from hotbed.gpu.cuda import Cuda
    from hotbed.gpu.growth import Growth

T = TypeVar("T")

EPILOG = """\b
Examples:
  hotbed calibrate
  hotbed calibrate --device 1 --out h100.toml
"""


@click.command(epilog=EPILOG)
@click.option(
    "--device", type=click.IntRange(min=0), default=0, show_default=True, help="CUDA device number."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: calibrations/GPU.toml in hotbed's configuration folder, found from then on]",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--quick", is_flag=True, help="A third of the repetitions.")
@click.option(
    "--torch",
    "python",
    metavar="PYTHON",
    help="Interpreter whose torch and cuDNN are measured.  [default: hotbed's own]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the calibration as one JSON object.")
@click.option("--allow-phantom", is_flag=True, help="Measure a phantom GPU: its times mean nothing.")
def command(
    device: int,
    out: Path | None,
    force: bool,
    quick: bool,
    python: str | None,
    as_json: bool,
    allow_phantom: bool,
) -> None:
    """Measure what hotbed needs to know of a GPU of this machine.

    The cost of driver calls, the memory of a CUDA context and of each library, and how the card's multiprocessors are
    spread over GPCs. Takes some seconds and up to a quarter of the free memory. Run it while the GPU is idle. `hotbed tune` and
    `hotbed replay` use the result for this GPU model from then on; `hotbed fit --gpu FILE` predicts for this very card.
    """
    from hotbed.cli.calibration_text import calibration_text
    from hotbed.cli.printer import print_json, show
    from hotbed.gpu.calibration import as_table, origin_here, refuse_overwrite, write
    from hotbed.gpu.cuda import Cuda
    from hotbed.gpu.measuring import measure

    phantom = os.environ.get("HOTBED_PHANTOM") == "1"
    if phantom and not allow_phantom:
        hint = "run it outside `hotbed phantom`, or add --allow-phantom to try the program itself"
        raise UsageError("this is a phantom GPU: the time of its calls means nothing", hint=hint)
    cuda = Cuda(device)
    path = out or _default_path(cuda.name())
    refuse_overwrite(path, force=force)
    origin = origin_here(shlex.join(["hotbed", *sys.argv[1:]]), __version__)
    measured = measure(cuda, quick=quick)
    # A phantom launches no clusters, and its libraries take nothing.
    table = as_table(measured, origin, *((None, None) if phantom else _beyond_the_driver(cuda, python)))
    write(table, path, force=force)
    if as_json:
        print_json(table)
    else:
        show(calibration_text(table))
    click.echo(f"wrote {path}", err=True)


def _beyond_the_driver(cuda: Cuda, python: str | None) -> tuple[Clusters | None, Growth | None]:
    """Layout and library growth, each None, with a warning, where it could not be had."""
    from hotbed.gpu.clusters import measure_clusters
    from hotbed.gpu.growth import measure_growth

    clusters = _or_warn("the GPC layout is", lambda: measure_clusters(cuda))
    growth = _or_warn("what libraries take is", lambda: measure_growth(cuda.uuid(), cuda.device, python))
    return clusters, growth


def _or_warn(what: str, measure: Callable[[], T | None]) -> T | None:
    try:
        return measure()
    except PlatformError as error:
        click.echo(f"{what} not in the file: {error}", err=True)
        return None


def _default_path(gpu_name: str) -> Path:
    from hotbed.gpu.calibration import default_name
    from hotbed.gpu.driver_costs import user_folder

    folder = user_folder()
    if folder is None:
        raise UsageError("this user has no home folder to keep the file in", hint="name a file with --out")
    return folder / default_name(gpu_name)
