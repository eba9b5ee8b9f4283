"""Whether a level grows step by step, told from noise and from steps up that do not go on."""

from __future__ import annotations

from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST: Final = 0.25
"""part of the run that is warm-up: caches and optimizer state grow there once"""
_QUARTERS: Final = 4
_LEAST_BYTES: Final = 16 << 20
_LEAST_SHARE: Final = 0.01
"""of the level: growth beyond both is worth a word"""


def growth(levels: Sequence[tuple[int, int]]) -> float | None:
    """Bytes a step by which `levels` (step, bytes) grow; None where they do not.

    The slope is the median of those between any two levels (Theil-Sen), so that a few outliers move nothing. It must
    hold in each quarter as well: one jump, and growth that ends, are no leak.
    """
    settled = levels[int(len(levels) * _FIRST) :]
    if len(settled) < 2 * _QUARTERS:
        return None
    slope = _slope(settled)
    total = slope * (settled[-1][0] - settled[0][0])
    if total < max(_LEAST_BYTES, _LEAST_SHARE * settled[0][1]):
        return None
    size = len(settled) // _QUARTERS
    quarters = [settled[start * size : (start + 1) * size + 1] for start in range(_QUARTERS)]
    return slope if all(_slope(part) > slope / 4 for part in quarters) else None


def _slope(points: Sequence[tuple[int, int]]) -> float:
    return median((b - a) / (y - x) for (x, a), (y, b) in combinations(points, 2) if y > x)
