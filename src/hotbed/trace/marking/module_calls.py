"""Where a program calls its modules, by the stacks of its allocations; and what it had made for such a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.marking.blocks import Blocks
    from hotbed.trace.marking.phases import Moment, Stretch

_MODULE_CALL = ("torch/nn/modules/module.py", "_call_impl")
_BETWEEN = ("backward end", "eval", "forward end")
"""marks after which a program may get the next batch"""


def module_calls(blocks: Blocks) -> npt.NDArray[np.int64]:
    """Events within a module's forward, ascending."""
    calls = np.array(
        [
            any(frame.filename.endswith(_MODULE_CALL[0]) and frame.name == _MODULE_CALL[1] for frame in stack)
            for stack in blocks.trace.stacks
        ]
        + [False]
    )
    return np.flatnonzero(calls[blocks.trace.events.stack])


def handed_in(
    blocks: Blocks, calls: npt.NDArray[np.int64], moments: Sequence[Moment], steps: Sequence[Stretch]
) -> npt.NDArray[np.int64]:
    """Numbers of the allocations that were made before a forward of a step and were alive when it began.

    That is the batch, wherever it came from. One that was got ready in the step before is not told apart from other
    work there.
    """
    found = [np.zeros(0, np.int64)]
    edges = np.array([moment.place for moment in moments if moment.kind in _BETWEEN], np.int64)
    for step in steps:
        if step.phase == "setup" or step.end_event == step.first_event:
            continue
        inside = edges[np.searchsorted(edges, step.first_event) : np.searchsorted(edges, step.end_event)]
        starts = [step.first_event, *inside.tolist()]
        for start, end in zip(starts, [*starts[1:], step.end_event], strict=True):
            at = int(np.searchsorted(calls, start))
            if at < len(calls) and calls[at] < end:
                first = max(start, blocks.counted.unbroken_since(int(calls[at])))
                made = np.arange(*np.searchsorted(blocks.allocs, [first, calls[at]]))
                found.append(made[blocks.freed_at[made] > calls[at]])
    return np.concatenate(found)
