"""Which guessed reads decide how much memory a program takes, and differ from draw to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .guesses import COUNTED, FROM_RANDOM, INDEX, NOISE, ONE_EACH, RANDOM

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_VALUES = ("item", "copy to host")
"""These read values: losses, metrics, stop conditions, words. The others read how many elements something has."""

_DRAWN = (COUNTED, FROM_RANDOM, INDEX, NOISE, ONE_EACH, RANDOM, "half of ")


def sizes_are_drawn(rows: Iterable[dict[str, Any]]) -> bool:
    """Whether sizes follow from guesses of which another seed draws others. `rows` are those of Session.finish()."""
    return any(not row["known"] and _sizes(row["operation"], row["answer"] or "") for row in rows)


def _sizes(operation: str, answer: str) -> bool:
    return answer.startswith(COUNTED if operation in _OF_VALUES else _DRAWN)
