"""Which allocation an event of a trace belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace import Action
from hotbed.trace.model import NONE

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.trace import Trace

_LIFE = (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)


def allocations_of(trace: Trace) -> npt.NDArray[np.int64]:
    """[n] for each alloc and free event the index of its alloc event; NONE for others, and for blocks older than the trace."""
    events = trace.events
    owner = np.full(len(events), NONE, np.int64)
    life = np.flatnonzero(np.isin(events.action, _LIFE))
    if not len(life):
        return owner
    # By address, then time: a free follows its allocation, since nothing else can be at that address meanwhile.
    order = life[np.argsort(events.address[life], kind="stable")]
    made = events.action[order] == Action.ALLOC
    latest = np.maximum.accumulate(np.where(made, np.arange(len(order)), NONE))
    found = order[latest]
    known = (latest != NONE) & (events.address[found] == events.address[order])
    owner[order[known]] = found[known]
    return owner
