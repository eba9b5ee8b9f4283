"""What other GPC layouts of the card would change: the trace again with the workspaces that cuDNN would take there."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.predicting.lifetimes import allocations_of
from hotbed.trace.model import NONE, Events

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.predicting.script_run import Workspace
    from hotbed.trace import Trace


def variants(trace: Trace, workspaces: Sequence[Workspace]) -> list[Trace]:
    """`trace` as each of the other layouts would have made it: one entry a layout that changes anything, each once.

    Workspaces change their size; one that a layout does without is left out, allocation and frees.
    """
    layouts = max((len(workspace.alternative_bytes) for workspace in workspaces), default=0)
    owner = allocations_of(trace) if layouts else np.empty(0, np.int64)
    made: dict[tuple[tuple[int, int], ...], Trace] = {}
    for layout in range(layouts):
        changes = tuple(
            (workspace.event, workspace.alternative_bytes[layout])
            for workspace in workspaces
            if layout < len(workspace.alternative_bytes)
            and workspace.alternative_bytes[layout] != workspace.bytes
        )
        if changes and changes not in made:
            made[changes] = _changed(trace, owner, changes)
    return list(made.values())


def _changed(trace: Trace, owner: npt.NDArray[np.int64], changes: Sequence[tuple[int, int]]) -> Trace:
    """`trace` with other sizes, in bytes, for the allocations of some events; 0 leaves one out."""
    size = np.full(len(owner), NONE, np.int64)
    for event, wanted in changes:
        size[event] = wanted
    wanted_of = np.where(owner == NONE, NONE, size[owner])
    sizes = np.where(wanted_of > 0, wanted_of, trace.events.size)
    events = replace(trace.events, size=sizes)
    return replace(trace, events=_rows(events, wanted_of != 0))


def _rows(events: Events, kept: npt.NDArray[np.bool_]) -> Events:
    columns: dict[str, Any] = {field.name: getattr(events, field.name) for field in fields(events)}
    rows: dict[str, Any] = {name: column[kept] for name, column in columns.items() if column is not None}
    return replace(events, **rows)
