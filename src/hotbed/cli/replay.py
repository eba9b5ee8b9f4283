"""`hotbed replay`: what a trace does under other settings, caps, GPUs or torch versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hotbed.cli.options import SIZE

if TYPE_CHECKING:
    from hotbed.replaying import Outcome

EPILOG = """\b
Examples:
  hotbed replay snapshot.pickle
  hotbed replay snapshot.pickle --settings expandable_segments:True --cap 15GiB
  hotbed replay snapshot.pickle --settings "" --settings max_split_size_mb:128
  hotbed replay snapshot.pickle --torch /env-a/bin/python --torch /env-b/bin/python
  hotbed replay snapshot.pickle --matrix rows.jsonl > outcomes.jsonl
"""


@click.command(epilog=EPILOG)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--settings",
    multiple=True,
    metavar="S",
    help="Allocator settings; repeat to compare.  [default: torch's]",
)
@click.option(
    "--cap", type=SIZE, help="Limit for the process, e.g. 15GiB, as set_per_process_memory_fraction sets."
)
@click.option("--gpu", metavar="NAME", help="GPU to replay on, see `hotbed gpus`.  [default: an H200]")
@click.option(
    "--torch", "pythons", multiple=True, metavar="PYTHON", help="Interpreter whose torch replays; repeatable."
)
@click.option(
    "--device", type=click.IntRange(min=0), help="Device of the trace.  [default: the one with most events]"
)
@click.option("--matrix", type=click.Path(path_type=Path), help='JSON lines {"settings", "cap_bytes"}.')
@click.option("--json", "as_json", is_flag=True, help="One JSON object an outcome and line.")
def command(
    trace: Path,
    settings: tuple[str, ...],
    cap: int | None,
    gpu: str | None,
    pythons: tuple[str, ...],
    device: int | None,
    matrix: Path | None,
    as_json: bool,
) -> None:
    """Replay TRACE, a torch memory snapshot or .hbt file, through torch's own allocator on a phantom GPU.

    Exact for the native allocator: the same peaks, driver calls and OOMs as on the card. Running out of memory is
    a result, not an error: the exit status is 0 then as well. `backend:cudaMallocAsync` gives an estimate.
    """
    from hotbed.replaying.batch import Configuration, read_matrix, replay_all
    from hotbed.trace import load_trace

    if matrix is not None and (settings or cap):
        raise click.UsageError("--matrix brings its own settings and caps: leave out --settings and --cap")
    configurations = (
        read_matrix(matrix) if matrix else [Configuration(text, cap) for text in settings or ("",)]
    )
    loaded = load_trace(trace, device)
    several = matrix is not None or len(configurations) * len(pythons or ("",)) > 1
    outcomes = replay_all(loaded, configurations, gpu=gpu, pythons=pythons or (None,), detail=not several)
    _print(outcomes, as_json=as_json or matrix is not None)
    _remark(loaded.other_devices, loaded.device)


def _print(outcomes: list[Outcome], *, as_json: bool) -> None:
    from hotbed.cli.printer import print_json, show
    from hotbed.reporting.outcome_text import comparison_text, outcome_text

    if as_json:
        for outcome in outcomes:
            print_json(outcome.to_json())
    else:
        show(outcome_text(outcomes[0]) if len(outcomes) == 1 else comparison_text(outcomes))


def _remark(other_devices: tuple[int, ...], device: int) -> None:
    if other_devices:
        others = ", ".join(map(str, other_devices))
        click.echo(
            f"note: device {device} was replayed; the file also has devices {others} (--device)", err=True
        )
