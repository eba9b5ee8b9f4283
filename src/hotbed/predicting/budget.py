"""Memory budgets under version control: what programs needed when somebody last agreed to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError
from hotbed.units import format_mib

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.predicting.prediction import Prediction

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


def against_budget(path: Path, found: Prediction) -> list[Growth]:
    """The figures of `found` beside those of the budget file at `path`.

    Raises HotbedError where the file is no budget, or has no entry for this program on this GPU.
    """
    entry = _read(path).get(_key(found))
    if entry is None:
        raise HotbedError(
            f"{path} has no budget for {_key(found)!r}",
            hint="add it with --update-budget and commit the file",
        )
    return [Growth(figure, entry[figure], getattr(found, figure)) for figure in _FIGURES]


def with_budget(path: Path, found: Prediction) -> str:
    """The text of the budget file with the figures of `found`; other entries stay as they are."""
    entries = _read(path) if path.exists() else {}
    entries[_key(found)] = {figure: getattr(found, figure) for figure in _FIGURES}
    return json.dumps({"schema": SCHEMA, "budgets": dict(sorted(entries.items()))}, indent=2) + "\n"


def _key(found: Prediction) -> str:
    settings = f" with {found.settings}" if found.settings else ""
    return f"{found.program} on {found.gpu}{settings}"


def _read(path: Path) -> dict[str, dict[str, int]]:
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
