"""`hotbed gpus`: the GPUs that hotbed knows, and where each figure comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from hotbed.gpu import Gpu

EPILOG = """\b
Examples:
  hotbed gpus
  hotbed gpus h100-80g
  hotbed gpus --json
"""
_MARKS = {"measured": "", "reported": " r", "documented": " d", "derived": " *"}
_LEGEND = "r: seen in published output   d: documented by the vendor   *: derived   unmarked: measured   N/A: unknown"


@click.command(epilog=EPILOG)
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str | None, as_json: bool) -> None:
    """List the GPUs that hotbed knows; with NAME, every figure of one GPU and its source.

    NAME is a slug from the list, in any case, or the name that CUDA reports.
    """
    from hotbed.cli.printer import note, print_json, show
    from hotbed.gpu import catalogue, find_gpu
    from hotbed.gpu.model import SCHEMA

    if name is not None:
        gpu = find_gpu(name)
        if as_json:
            print_json(gpu.to_json())
        else:
            show(_figures(gpu))
    elif as_json:
        print_json({"schema": SCHEMA, "gpus": [gpu.to_json() for gpu in catalogue()]})
    else:
        show(_overview(catalogue()))
        note(_LEGEND)


def _overview(gpus: tuple[Gpu, ...]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("GPU", "name in CUDA", "memory in CUDA", "SMs", "cc", "L2", "context"):
        table.add_column(heading, justify="left" if heading in ("GPU", "name in CUDA") else "right")
    for gpu in gpus:
        shown = [
            _marked(gpu, figure)
            for figure in ("total_bytes", "sm_count", "compute_capability", "l2_bytes", "context_bytes")
        ]
        table.add_row(gpu.slug, gpu.name, *shown)
    return table


def _figures(gpu: Gpu) -> Group:
    from rich import box
    from rich.console import Group
    from rich.table import Table

    from hotbed.gpu.model import FIGURES

    table = Table("figure", "value", "kind", "source", box=box.SIMPLE_HEAD)
    texts = list(dict.fromkeys(source.text for _, source in gpu.sources))
    for figure in FIGURES:
        source = gpu.source_of(figure)
        value = getattr(gpu, figure)
        exact = f" ({value})" if figure.endswith("_bytes") and value is not None else ""
        origin = (source.kind, f"({texts.index(source.text) + 1})") if source else ("unknown", "")
        table.add_row(figure, _words(figure, value) + exact, *origin)
    return Group(f"{gpu.slug}: {gpu.name}", table, *(f"({n}) {text}" for n, text in enumerate(texts, 1)))


def _marked(gpu: Gpu, figure: str) -> str:
    source = gpu.source_of(figure)
    return _words(figure, getattr(gpu, figure)) + (_MARKS[source.kind] if source else "")


def _words(figure: str, value: Any) -> str:
    from hotbed.units import GIB, format_size

    if value is None:
        return "N/A"
    if figure == "compute_capability":
        return "{}.{}".format(*value)
    if not figure.endswith("_bytes"):
        return str(value)
    # The form of torch's own messages: two decimals of GiB.
    return f"{value / GIB:.2f} GiB" if value >= GIB else format_size(value).replace(".0 ", " ")
