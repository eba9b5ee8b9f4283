"""Why a recording gave segments back to the driver: empty_cache(), which torch does not record, or a retry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.model import Action, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

_RELEASES = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
_GROWTHS = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)


@dataclass(frozen=True)
class Releases:
    """`empty_cache_events`: for each inferred empty_cache() call the event index of its first release."""

    empty_cache_events: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Run:
    """Consecutive release events: first index, reserved bytes before it, bytes of the growth that follows."""

    first: int
    reserved_before: int
    growth_after: int | None


def explain_releases(trace: Trace) -> Releases:
    """Sorts every run of releases in `trace` into empty_cache() calls and retries at a memory limit.

    A retry releases because reserved + request exceeds the limit, and no recording can exceed its own limit;
    so a run below the recording's own peak was not forced. If one run was not, all are taken as calls: the
    program evidently makes them. Garbage collection counts as forced. Source: allocator-semantics, 3.1 and 8.4.
    """
    runs = _runs(trace)
    if not runs:
        return Releases()
    collects = "garbage_collection_threshold" in trace.settings
    peak = int(_initial_bytes(trace) + reserved_changes(trace).cumsum().max())
    forced = [_may_be_retry(run, peak) for run in runs]
    if not collects and not all(forced):
        return Releases(
            frozenset(run.first for run in runs),
            (f"{len(runs)} releases of cached memory were taken as calls of torch.cuda.empty_cache()",),
        )
    calls = frozenset(run.first for run in runs if run.growth_after is None)
    note = f"{len(runs) - len(calls)} releases of cached memory were taken as retries of the recorded run"
    return Releases(calls, (note,))


def _may_be_retry(run: _Run, peak_bytes: int) -> bool:
    return run.growth_after is not None and run.reserved_before + run.growth_after > peak_bytes


def reserved_changes(trace: Trace) -> npt.NDArray[np.int64]:
    """[n] bytes that each event adds to reserved memory."""
    action = trace.events.action
    sign = np.isin(action, _GROWTHS).astype(np.int64) - np.isin(action, _RELEASES).astype(np.int64)
    return sign * trace.events.size


def _initial_bytes(trace: Trace) -> int:
    return sum(segment.size_bytes for segment in trace.initial_segments)


def _runs(trace: Trace) -> list[_Run]:
    """All runs of releases; an OOM after a run counts as a growth that did not fit."""
    action, size = trace.events.action, trace.events.size
    reserved = _initial_bytes(trace) + reserved_changes(trace).cumsum()
    released = np.isin(action, _RELEASES)
    firsts = np.flatnonzero(released & ~np.roll(released, 1) | (released & (np.arange(len(action)) == 0)))
    runs = []
    for first in firsts.tolist():
        after = first
        while after < len(action) and (released[after] or action[after] == Action.FREE_COMPLETED):
            after += 1
        grows = after < len(action) and action[after] in (*_GROWTHS, Action.OOM)
        before = int(reserved[first] + size[first])
        runs.append(_Run(first, before, int(size[after]) if grows else None))
    return runs
