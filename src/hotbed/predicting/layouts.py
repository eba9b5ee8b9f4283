"""What other GPC layouts of the card would change: the trace again with the workspaces that cuDNN would take there."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.predicting.lifetimes import allocations_of
from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.predicting.script_run import Workspace
    from hotbed.trace import Events, Trace

_LIFE = (Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)
_NOWHERE = np.uint64(1 << 62)
"""addresses from here on: no device memory lies there"""


def variants(trace: Trace, workspaces: Sequence[Workspace]) -> list[Trace]:
    """`trace` as each of the other layouts would have made it: one entry a layout that changes anything, each once.

    Workspaces change their size; one that a layout does without is left out, allocation and frees, and one that only
    another layout wants is put in, taken and freed at once, as cuDNN's callers do.
    """
    layouts = max((len(workspace.alternative_bytes) for workspace in workspaces), default=0)
    owner = allocations_of(trace) if layouts else np.empty(0, np.int64)
    made: dict[tuple[Workspace, ...], Trace] = {}
    for layout in range(layouts):
        changes = tuple(
            replace(workspace, alternative_bytes=(workspace.alternative_bytes[layout],))
            for workspace in workspaces
            if layout < len(workspace.alternative_bytes)
            and workspace.alternative_bytes[layout] != workspace.bytes
        )
        if changes and changes not in made:
            made[changes] = _changed(trace, owner, changes)
    return list(made.values())


def _changed(trace: Trace, owner: npt.NDArray[np.int64], changes: Sequence[Workspace]) -> Trace:
    """`trace` with the one alternative of each of `changes` in its place."""
    events = trace.events
    size = np.full(len(owner), NONE, np.int64)
    for workspace in changes:
        if workspace.bytes:
            size[workspace.event] = workspace.alternative_bytes[0]
    wanted = np.where(owner == NONE, NONE, size[owner])
    events = replace(events, size=np.where(wanted > 0, wanted, events.size))
    new = [workspace for workspace in changes if not workspace.bytes]
    kept = np.insert(wanted != 0, _places(new), True)
    rows = {name: column[kept] for name, column in _with_new(events, new).items()}
    return replace(trace, events=replace(events, **rows))


def _places(new: Sequence[Workspace]) -> npt.NDArray[np.int64]:
    """Where the three events of each workspace go: before the event that it names."""
    return np.repeat(np.array([workspace.event for workspace in new], np.int64), len(_LIFE))


def _with_new(events: Events, new: Sequence[Workspace]) -> dict[str, Any]:
    """The columns of `events` with `new` workspaces; what is not said of one is as in the event before it."""
    columns: dict[str, Any] = {field.name: getattr(events, field.name) for field in fields(events)}
    known = {name: column for name, column in columns.items() if column is not None}
    if not new:
        return known
    places = _places(new)
    before = {name: column[np.maximum(places - 1, 0)] for name, column in known.items()}
    before["action"] = np.tile(np.array(_LIFE, np.uint8), len(new))
    before["size"] = np.repeat([workspace.alternative_bytes[0] for workspace in new], len(_LIFE))
    before["address"] = np.repeat(_NOWHERE + np.arange(len(new), dtype=np.uint64), len(_LIFE))
    return {name: np.insert(column, places, before[name]) for name, column in known.items()}
