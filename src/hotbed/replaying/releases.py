"""Why a recording gave segments back to the driver: empty_cache(), the end of a private pool, or a retry."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.model import DEFAULT_POOL, NONE, Action, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from hotbed.trace.model import PoolId

_RELEASES = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
_GROWTHS = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_SMALL_BYTES = 1 << 20
"""requests up to this size live in the small pool. Source: kSmallSize, allocator-semantics 1.2"""
_SMALL_SEGMENT_BYTES = 2 << 20
# A retry releases and grows within one call of the allocator, a call of empty_cache() returns to the interpreter in
# between. Where the driver takes no time (a phantom) that is 2 to 3 us against 6 to 25, with expandable segments 7 to 12
# against 15 to 25, measured with torch 2.9 to 2.14. A real cudaMalloc takes longer (49 us at least in the traces of
# tests/data/h200), and then times say nothing.
_SAME_CALL_US = {int(Action.SEGMENT_ALLOC): 4, int(Action.SEGMENT_MAP): 13}
_INSTANT_DRIVER_US = 25


class _Cause(Enum):
    CALL = "calls of torch.cuda.empty_cache()"
    POOL_END = "ends of a MemPool"
    RETRY = "retries at a memory limit"


@dataclass(frozen=True)
class Releases:
    """For each run of releases, by the event index of its first: `empty_cache_events` those that are calls of
    empty_cache(), `ended_pools` the private pools that had come to their end by then."""

    empty_cache_events: frozenset[int] = frozenset()
    ended_pools: dict[int, tuple[PoolId, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Run:
    """Consecutive release events [first, end), reserved bytes before them, and the growth that follows, if any."""

    first: int
    end: int
    reserved_before: int
    growth: int | None
    """index of the segment event or OOM right after the run"""


def explain_releases(trace: Trace) -> Releases:
    """Sorts the runs of releases in `trace` into empty_cache() calls, ends of private pools, and retries.

    Torch records none of these. What is certain comes first (see _Evidence.cause). Runs that could be either are told
    by their times where these say something; otherwise they are taken as calls if the program evidently makes such
    calls and never retries, and as retries if not.
    """
    runs = list(_runs(trace))
    if not runs:
        return Releases()
    evidence = _Evidence(trace, runs)
    causes = [evidence.cause(run) for run in runs]
    habit = _Cause.CALL in causes and _Cause.RETRY not in causes and not evidence.collects
    unclear = evidence.cause_by_time(runs, causes) or (_Cause.CALL if habit else _Cause.RETRY)
    causes = [cause or unclear for cause in causes]
    return Releases(
        frozenset(run.first for run, cause in zip(runs, causes, strict=True) if cause is _Cause.CALL),
        {run.first: pools for run in runs if (pools := _private_pools(trace, run))},
        tuple(
            f"{causes.count(cause)} releases of cached memory were taken as {cause.value}"
            for cause in _Cause
            if cause in causes
        ),
    )


class _Evidence:
    """What the recording as a whole says about its runs of releases."""

    def __init__(self, trace: Trace, runs: list[_Run]) -> None:
        self.trace = trace
        self.collects = "garbage_collection_threshold" in trace.settings
        reserved = reserved_bytes(trace)
        self.peak = int(max(reserved.max(), runs[0].reserved_before))
        self.limit = _limit_above(trace, reserved)
        growths = np.flatnonzero(np.isin(trace.events.action, _GROWTHS))
        gaps = np.diff(trace.events.time_us)[growths[growths > 0] - 1]
        self.requests = np.flatnonzero(np.isin(trace.events.action, (Action.ALLOC, Action.OOM)))
        self.instant = bool(len(gaps) and trace.events.time_us.any() and gaps.min() <= _INSTANT_DRIVER_US)

    def cause(self, run: _Run) -> _Cause | None:
        """Why `run` happened; None where it may be a call as well as a retry.

        A call, if its stack says so; if nothing grew after it; if what was reserved plus the growth is below the
        recording's own peak, which no limit allows to pass (garbage collection may); or if the request that
        follows fits into what was released. A retry, if that sum exceeds what ran out of memory elsewhere.
        Source: allocator-semantics, 3.1 and 8.4.
        """
        if all(_is_mempool(pool) for pool in _pools(self.trace, run)):
            return _Cause.POOL_END
        by_stack = _cause_by_stack(self.trace, run)
        if by_stack is not None:
            return by_stack
        if run.growth is None:
            return _Cause.CALL
        needed = run.reserved_before + int(self.trace.events.size[run.growth])
        if not self.collects and (needed <= self.peak or self._was_not_needed(run)):
            return _Cause.CALL
        if self.limit is not None and needed >= self.limit:
            return _Cause.RETRY
        return None

    def cause_by_time(self, runs: list[_Run], causes: list[_Cause | None]) -> _Cause | None:
        """Why the runs without a cause happened, by the median of their distances to the growth that follows."""
        events = self.trace.events
        unclear = [
            run.growth for run, cause in zip(runs, causes, strict=True) if cause is None and run.growth
        ]
        longer = [
            int(events.time_us[growth] - events.time_us[growth - 1])
            - _SAME_CALL_US[int(events.action[growth])]
            for growth in unclear
            if int(events.action[growth]) in _SAME_CALL_US
        ]
        if not self.instant or not longer:
            return None
        return _Cause.RETRY if median(longer) <= 0 else _Cause.CALL

    def _was_not_needed(self, run: _Run) -> bool:
        """Whether the request after `run` would have found room in what was released."""
        events = self.trace.events
        if run.growth is None or "max_split_size_mb" in self.trace.settings or _freed_late(self.trace, run):
            return False
        request = self._request_after(run.growth)
        if "roundup" in self.trace.settings:
            request = max(request, int(events.size[run.growth]))
        same = slice(run.first, run.end)
        small = events.size[same] <= _SMALL_SEGMENT_BYTES
        return bool(
            (
                (events.action[same] == Action.SEGMENT_FREE)
                & (events.stream[same] == events.stream[run.growth])
                & (events.pool[same] == events.pool[run.growth])
                & (small == (request <= _SMALL_BYTES))
                & (events.size[same] >= request)
            ).any()
        )

    def _request_after(self, growth: int) -> int:
        """Bytes of the request that made reserved memory grow at event `growth`."""
        found = np.searchsorted(self.requests, growth)
        return int(self.trace.events.size[self.requests[found] if found < len(self.requests) else growth])


def _cause_by_stack(trace: Trace, run: _Run) -> _Cause | None:
    """By the stack of the release, which is that of empty_cache() or of the request that was retried."""
    stack = int(trace.events.stack[run.first])
    if stack == NONE:
        return None
    called = any(frame.name == "empty_cache" or "emptyCache" in frame.name for frame in trace.stacks[stack])
    return _Cause.CALL if called else _Cause.RETRY if run.growth is not None else None


def _freed_late(trace: Trace, run: _Run) -> bool:
    """Whether memory was released that another stream had held until just then: no request could have used it."""
    action, address = trace.events.action, trace.events.address
    last = run.first - 1
    if last < 0 or action[last] != Action.FREE_COMPLETED:
        return False
    return last == 0 or action[last - 1] != Action.FREE_REQUESTED or address[last - 1] != address[last]


def _limit_above(trace: Trace, reserved: npt.NDArray[np.int64]) -> int | None:
    """Bytes that the recording could not reserve, by its OOMs; None where it had none."""
    ooms = trace.events.action == Action.OOM
    return int((reserved[ooms] + trace.events.size[ooms]).min()) if ooms.any() else None


def _private_pools(trace: Trace, run: _Run) -> tuple[PoolId, ...]:
    """The private pools whose memory `run` released. Only a pool that nobody refers to any more gives back any."""
    return tuple(pool for pool in _pools(trace, run) if pool != DEFAULT_POOL)


def _pools(trace: Trace, run: _Run) -> tuple[PoolId, ...]:
    """The pools of what `run` released, each once. What is in no known pool counts as the default pool's."""
    events = trace.events
    released = np.isin(events.action[run.first : run.end], _RELEASES)
    found = events.pool[run.first : run.end][released].tolist()
    return tuple(dict.fromkeys(DEFAULT_POOL if pool == NONE else trace.pools[pool] for pool in found))


def _is_mempool(pool: PoolId) -> bool:
    """Whether `pool` is a torch.cuda.MemPool, which gives its memory back by itself; a graph's pool is (n, 0)."""
    return pool != DEFAULT_POOL and pool[0] == 0


def reserved_changes(trace: Trace) -> npt.NDArray[np.int64]:
    """[n] bytes that each event adds to reserved memory."""
    action = trace.events.action
    sign = np.isin(action, _GROWTHS).astype(np.int64) - np.isin(action, _RELEASES).astype(np.int64)
    return sign * trace.events.size


def reserved_bytes(trace: Trace) -> npt.NDArray[np.int64]:
    """[n] bytes reserved after each event."""
    initial = sum(segment.size_bytes for segment in trace.initial_segments)
    reserved: npt.NDArray[np.int64] = initial + reserved_changes(trace).cumsum()
    return reserved


def _runs(trace: Trace) -> Iterator[_Run]:
    """All runs of releases; an OOM after a run counts as a growth that did not fit."""
    action, size = trace.events.action, trace.events.size
    reserved = reserved_bytes(trace)
    released = np.isin(action, _RELEASES)
    before = np.concatenate(([False], released[:-1]))
    for first in np.flatnonzero(released & ~before).tolist():
        after = first
        while after < len(action) and (released[after] or action[after] == Action.FREE_COMPLETED):
            after += 1
        grows = after < len(action) and action[after] in (*_GROWTHS, Action.OOM)
        yield _Run(first, after, int(reserved[first] + size[first]), after if grows else None)
