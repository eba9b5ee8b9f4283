"""`hotbed settings`: explains an allocator settings string and judges it for a torch version."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from hotbed.settings import NEWEST, USES, TorchVersion, installed_torch, judge

if TYPE_CHECKING:
    from rich.table import Table

    from hotbed.settings import Judgement

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
EPILOG = """\b
Examples:
  hotbed settings check "max_split_size_mb:128" --torch 2.9
  hotbed settings check "expandable_segments:True" --uses ipc,mempool
  hotbed settings check     (the variable that this shell has set)

\b
Words for --uses:
"""


@click.group()
def command() -> None:
    """Explain an allocator settings string for a torch version."""


@command.command(epilog=EPILOG + "\n".join(f"  {word:<11} {meaning}" for word, meaning in USES.items()))
@click.argument("text", metavar="[STRING]", required=False)
@click.option(
    "--torch", "torch_text", metavar="VERSION", help="Torch to judge for, e.g. 2.9.  [default: installed]"
)
@click.option("--uses", multiple=True, metavar="WORDS", help="What else the program does: ipc,mempool,...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(text: str | None, torch_text: str | None, uses: tuple[str, ...], as_json: bool) -> int:
    """Say what each key of STRING does to memory, and what is wrong with it.

    Without STRING, PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF are read as that torch reads them. Exit status 1
    if there is an error, 0 otherwise.
    """
    from hotbed.cli.printer import note, print_json

    version = TorchVersion.parse(torch_text) if torch_text else installed_torch()
    if version is None:
        note(
            f"no torch is installed here: judged for {NEWEST.release}, the newest known; choose with --torch"
        )
    words = frozenset(word.strip() for group in uses for word in group.split(",") if word.strip())
    judgement = judge(text, version or NEWEST, words, os.environ)
    if as_json:
        print_json(judgement.to_json())
    else:
        _show(judgement, given=text is not None)
    return 1 if judgement.refused else 0


def _show(judgement: Judgement, *, given: bool) -> None:
    from hotbed.cli.printer import show

    click.echo(_headline(judgement, given=given))
    if judgement.explanations:
        show(_rows([(f"{line.key}:{line.value}", "", line.meaning, None) for line in judgement.explanations]))
    if judgement.findings:
        rows = [
            (f"{f.severity}: {f.rule}", _STYLES[f.severity], f.message, f.hint) for f in judgement.findings
        ]
        click.echo()
        show(_rows(rows))
    if judgement.explanations and not judgement.refused:
        click.echo(f"\nexport {judgement.variable}='{judgement.settings}'")


def _headline(judgement: Judgement, *, given: bool) -> str:
    torch = f"torch {judgement.version}"
    if given:
        return f"For {torch}:" if judgement.text.strip() else f"No settings: the defaults of {torch} hold."
    if judgement.read_from is None:
        return f"{torch} finds no settings in the environment: its defaults hold."
    return f"{torch} reads {judgement.read_from}={judgement.text!r}:"


def _rows(rows: list[tuple[str, str, str, str | None]]) -> Table:
    """A table of (label, style of the label, text, hint below it)."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(overflow="fold", max_width=44)
    grid.add_column()
    for label, style, text, hint in rows:
        # Text, not str: a list in brackets would be read as markup.
        lines = Text(text)
        if hint:
            lines.append(f"\n→ {hint}", style="dim")
        grid.add_row(Text(label, style=style), lines)
    return grid
