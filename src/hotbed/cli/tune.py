"""`hotbed tune`: the allocator settings that suit a trace, found by replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hotbed.errors import UsageError

if TYPE_CHECKING:
    from hotbed.tuning import Recommendation

GOALS = ("memory", "balanced", "speed")
EPILOG = """\b
Examples:
  hotbed tune snapshot.pickle
  hotbed tune monday.pickle tuesday.pickle --goal memory --gpu h100-80g
  hotbed tune snapshot.pickle --uses ipc --write hotbed.toml
  hotbed tune snapshot.pickle --torch /env/bin/python --json | jq .recommended
"""


@click.command(epilog=EPILOG)
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--goal",
    type=click.Choice(GOALS),
    default="balanced",
    show_default=True,
    help="What to spend for memory: anything, 1 % of a step, nothing.",
)
@click.option("--gpu", metavar="NAME", help="GPU to tune for, see `hotbed gpus`.  [default: an H200]")
@click.option(
    "--torch", "python", metavar="PYTHON", help="Interpreter whose torch replays.  [default: this one]"
)
@click.option(
    "--uses",
    metavar="WORDS",
    default="",
    help="What rules settings out, e.g. ipc,mempool; see `hotbed settings check`.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the choice into this hotbed.toml, comments kept.",
)
@click.option("--json", "as_json", is_flag=True, help="The whole recommendation as one JSON object.")
def command(
    traces: tuple[Path, ...],
    goal: str,
    gpu: str | None,
    python: str | None,
    uses: str,
    write: Path | None,
    as_json: bool,
) -> int:
    """Find allocator settings, and a memory cap, for recorded TRACES (torch snapshots or .hbt files).

    Every candidate is replayed through torch's own allocator, so the figures are those of the card. The cap
    carries a margin, derived from runs that the recorded one might have been. Several traces: the choice suits
    all of them. Ctrl-C prints the best found so far.
    """
    from hotbed.cli.progress import replay_progress
    from hotbed.tuning import tune

    if write is not None:
        _check_target(write)  # what is wrong with it should not come out after the search
    words = [word.strip() for word in uses.split(",") if word.strip()]
    with replay_progress() as on_progress:
        found = tune(list(traces), goal, gpu=gpu, python=python, uses=words, on_progress=on_progress)
    _print(found, as_json=as_json)
    if write is not None:
        _write(write, found, card=found.gpu if gpu else None)
    return 130 if found.interrupted else 0


def _print(found: Recommendation, *, as_json: bool) -> None:
    from hotbed.cli.printer import print_json, show
    from hotbed.reporting.recommendation_text import recommendation_text
    from hotbed.settings import TorchVersion, environment_names

    if as_json:
        print_json(found.to_json())
        return
    name = environment_names(TorchVersion.parse(found.torch_version))[0]
    show(recommendation_text(found, name))


def _check_target(path: Path) -> None:
    from hotbed.settings.toml import load

    if path.exists():
        load(path)
    elif not path.parent.is_dir():
        raise UsageError(f"--write {path}: there is no folder {path.parent}", hint=f"mkdir -p {path.parent}")


def _write(path: Path, found: Recommendation, card: str | None) -> None:
    from hotbed.settings.toml import MemorySection, write_memory

    choice = found.recommended
    section = MemorySection(settings=choice.settings, cap_bytes=choice.cap_bytes)
    write_memory(path, section, gpu_name=card)
    click.echo(f"wrote {path}", err=True)
