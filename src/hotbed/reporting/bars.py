"""Bars of text: curves over time, and shares of a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.trace.overview import timeline

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_UPWARDS: Final = " ▁▂▃▄▅▆▇█"
_SIDEWAYS: Final = " ▏▎▍▌▋▊▉█"
_WIDTH: Final = 72


def curve_bars(values: ArrayLike, top: int) -> str:
    """`values` as a row of bars, oldest first, the highest of each stretch; a full bar is `top`."""
    full = len(_UPWARDS) - 1
    highest = timeline(np.asarray(values, np.int64), _WIDTH)
    return "".join(_UPWARDS[min(full, value * full // max(top, 1))] for value in highest)


def share_bar(value: int, whole: int, width: int) -> str:
    """A bar from the left that is `width` characters long where `value` is `whole`, in eighths of a character."""
    full = len(_SIDEWAYS) - 1
    eighths = min(width * full, round(value * width * full / max(whole, 1)))
    return (_SIDEWAYS[full] * (eighths // full) + _SIDEWAYS[eighths % full]).strip()
