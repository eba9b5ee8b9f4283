"""Memory budgets under version control: what programs needed when somebody last agreed to it."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError
from hotbed.units import format_mib

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.predicting.prediction import Prediction
    from hotbed.predicting.program import Program

SCHEMA = 1
_FIGURES = ("peak_allocated_bytes", "peak_reserved_bytes")


@dataclass(frozen=True)
class Growth:
    """One figure of a prediction against its budget, in bytes."""

    figure: str
    budget_bytes: int
    found_bytes: int

    @property
    def percent(self) -> float:
        """How far the figure is above the budget; negative below."""
        return 100 * (self.found_bytes / self.budget_bytes - 1) if self.budget_bytes else 0.0

    def __str__(self) -> str:
        name = self.figure.removesuffix("_bytes").replace("_", " ")
        return f"{name} {format_mib(self.found_bytes)}, budget {format_mib(self.budget_bytes)} ({self.percent:+.1f} %)"


def against_budget(path: Path, program: Program, found: Prediction) -> list[Growth]:
    """The figures of `found`, the prediction for `program`, beside those of the budget file at `path`.

    Raises HotbedError where the file is no budget, or has no entry for this program on this GPU.
    """
    key = _key(path, program, found)
    entry = read_budget(path).get(key)
    if entry is None:
        raise HotbedError(
            f"{path} has no budget for {key!r}",
            hint="add it with --update-budget and commit the file",
        )
    return [Growth(figure, entry[figure], getattr(found, figure)) for figure in _FIGURES]


def with_budget(path: Path, program: Program, found: Prediction) -> str:
    """The text of the budget file with the figures of `found`; other entries stay as they are."""
    entries = read_budget(path) if path.exists() else {}
    entries[_key(path, program, found)] = {figure: getattr(found, figure) for figure in _FIGURES}
    return json.dumps({"schema": SCHEMA, "budgets": dict(sorted(entries.items()))}, indent=2) + "\n"


def _key(path: Path, program: Program, found: Prediction) -> str:
    """One entry a program, wherever it is started from: a script goes by its place beside the budget file."""
    name = found.program
    if program.kind == "script":
        name = shlex.join([os.path.relpath(program.target, path.parent), *program.arguments])
    settings = f" with {found.settings}" if found.settings else ""
    return f"{name} on {found.gpu}{settings}"


def read_budget(path: Path) -> dict[str, dict[str, int]]:
    """Program, GPU and settings → figure → bytes. Raises HotbedError where `path` is no budget file."""
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HotbedError(f"there is no budget file {path}", hint="make it with --update-budget") from None
    except ValueError:
        raw = None
    try:
        entries = {
            key: {figure: int(entry[figure]) for figure in _FIGURES} for key, entry in raw["budgets"].items()
        }
        known = raw["schema"] == SCHEMA
    except (AttributeError, KeyError, TypeError, ValueError):
        known = False
    if not known:
        raise HotbedError(
            f"{path} is no budget file of hotbed fit, schema {SCHEMA}",
            hint="remove it and use --update-budget",
        )
    return entries
