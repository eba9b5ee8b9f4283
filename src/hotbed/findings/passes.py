"""Tells a forward whose activations are kept for a backward from one whose activations nobody will use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.trace.model import NONE

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.trace import Frame
    from hotbed.trace.recorded import Step

_KEPT: Final = 0.5
"""Under no_grad a layer's output goes when the next is made: of a model with a few layers little is held at once. With
gradients on most of what the forward made stays."""
_ENOUGH: Final = 6
"""blocks from which on the share says something"""


@dataclass(frozen=True)
class Wasted:
    """What a forward made, and what of it was held at its peak. Bytes."""

    made_bytes: int
    kept_bytes: int
    blocks: int


def keeps_for_nothing(case: Case, step: Step, peak: int) -> Wasted | None:
    """What the pass with its peak at place `peak` keeps without a backward to follow; None if it does not, or if the
    trace cannot tell (no stacks).

    Backward runs on threads of its own: its allocations have no Python stack, or one that shows backward().
    """
    made = case.allocations
    if not case.trace.stacks or step.first_event is None:
        return None
    curve = case.curves.allocated[step.first_event : peak]
    trough = step.first_event + int(curve.argmin()) + 1 if len(curve) else step.first_event
    window = (made.made >= trough) & (made.made < peak) & (made.stack != NONE)
    kept = np.flatnonzero(window & made.live_at(peak) & _in_a_module(case)[made.stack])
    made_bytes, kept_bytes = int(made.size[window].sum()), int(made.size[kept].sum())
    if len(kept) < _ENOUGH or kept_bytes < _KEPT * made_bytes:
        return None
    freed = int(np.median(made.freed[kept]))
    following = (made.made > int(made.made[kept].max())) & (made.made < freed)
    if (following & (_in_backward(case)[made.stack] | (made.stack == NONE))).any():
        return None
    return Wasted(made_bytes, kept_bytes, len(kept))


def _in_a_module(case: Case) -> npt.NDArray[np.bool_]:
    return _stacks_with(case, lambda frame: frame.name == "_call_impl")


def _in_backward(case: Case) -> npt.NDArray[np.bool_]:
    return _stacks_with(case, lambda frame: frame.name in ("backward", "_engine_run_backward"))


def _stacks_with(case: Case, wanted: Callable[[Frame], bool]) -> npt.NDArray[np.bool_]:
    """For each stack, and last for none, whether a frame is `wanted`."""
    return np.array([any(wanted(frame) for frame in stack) for stack in case.trace.stacks] + [False])
