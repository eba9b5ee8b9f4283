"""How far above the predicted peak a cap must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.tuning.search import CAP_STEP_BYTES

if TYPE_CHECKING:
    from hotbed.predicting.prediction import Range

_USUAL_SHARE = 0.01
_LARGEST_SHARE = 0.02


def margin_bytes(peak_reserved_bytes: int, over_layouts: Range, over_seeds_bytes: int = 0) -> int:
    """Bytes to add to the reserved peak when it becomes a cap: 1 % of it, or what other layouts need, at most 2 %.

    Whole multiples of CAP_STEP_BYTES where 2 % leave room for one. Peaks of a real run differ from the predicted ones
    by less than 0.5 % where they differ (docs/accuracy.md), and a program at its cap flushes its cache before it fails.
    `over_seeds_bytes`, what the largest seed reserved above the smallest, is added where sizes rest on guesses: the
    next draw is above the largest of n once in n + 1, and above the largest by as much as they lie apart 6 times in
    100 with three even or normal draws.
    """
    wanted = max(_USUAL_SHARE * peak_reserved_bytes, over_layouts.high - peak_reserved_bytes)
    most = int(_LARGEST_SHARE * peak_reserved_bytes)
    stepped = -(-int(wanted) // CAP_STEP_BYTES) * CAP_STEP_BYTES
    return min(stepped, most) + over_seeds_bytes
