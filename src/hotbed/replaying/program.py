"""A trace as a program for the allocator: the calls that made it, in order, in columns a replay can run."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from hotbed.errors import TraceError
from hotbed.replaying.rebuilding import is_made_whole, oldest_first, pieces_of
from hotbed.replaying.releases import Releases, explain_releases
from hotbed.replaying.steps import Steps, find_steps
from hotbed.trace.model import DEFAULT_POOL, Action, PoolId, Segment, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable


class Op(IntEnum):
    """One call of a program. Values are shared with worker.py, which cannot import this module."""

    ALLOC = 0
    FREE = 1
    TRACKED_ALLOC = 2
    """allocation that another stream will use: made as a tensor, so that record_stream is possible"""
    PENDING_FREE = 3
    """free while the other stream still works; the block stays busy until COMPLETE"""
    COMPLETE = 4
    EMPTY_CACHE = 5
    END_POOL = 6
    """the last reference to a private pool goes: its memory may be given back from now on"""
    BEGIN = 7
    """recording began: what was before rebuilds the state of that moment, and counts for nothing"""
    TRIED_ALLOC = 8
    """request that the recorded program survived not getting: given back at once where it is served"""


RELEASES = (Op.FREE, Op.PENDING_FREE, Op.COMPLETE)
"""ops that end an allocation, wholly or in part"""


@dataclass(frozen=True)
class Program:
    """Columns of equal length n, one entry per op; `allocation` numbers the allocations 0..allocations-1."""

    op: array[int]
    """[n] values of Op, type code B"""
    allocation: array[int]
    """[n] which allocation is made or freed, type code i"""
    size: array[int]
    """[n] requested bytes, 0 except for allocations, type code q"""
    stream: array[int]
    """[n] recorded cudaStream_t, type code Q"""
    pool: array[int]
    """[n] index into pools; 0 is the default pool, type code i"""
    event: array[int]
    """[n] the trace event that caused the op, -1 for ops that rebuild the state before the trace, code i"""
    allocations: int
    pools: tuple[PoolId, ...] = (DEFAULT_POOL,)
    segments: tuple[tuple[int, int], ...] = ()
    """(address, bytes) of each recorded cudaMalloc in order, those that rebuild the beginning first"""
    steps: Steps = field(default_factory=Steps)
    """training steps; starts are op indices"""
    notes: tuple[str, ...] = ()
    """what had to be assumed, in words"""

    def __len__(self) -> int:
        return len(self.op)

    @property
    def has_pending_frees(self) -> bool:
        return Op.PENDING_FREE in self.op

    @property
    def beginning(self) -> int:
        """index of the first op that belongs to the recording"""
        return self.op.index(Op.BEGIN) + 1 if Op.BEGIN in self.op else 0


def compile_trace(trace: Trace) -> Program:
    """The program that `trace` records.

    Ghosts (blocks alive before recording) are allocated first; an OOM becomes one more request, so that a replay
    can tell whether other settings would have served it: only the one that ended the program ends the replay.
    cudaFree runs that are no retries become empty_cache() calls. Raises TraceError when nothing was recorded.
    """
    if not len(trace.events):
        raise TraceError(
            f"{trace.source} holds no allocator events: nothing was recorded, only the memory map at the end",
            hint="call torch.cuda.memory._record_memory_history() before the steps that it should hold",
        )
    builder = _Builder(trace)
    builder.rebuild_initial_state()
    builder.add_events()
    return builder.finish()


class _Builder:
    """Walks the events once and writes ops; keeps which allocation lives at which address."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.op = array("B")
        self.allocation = array("i")
        self.size = array("q")
        self.stream = array("Q")
        self.pool = array("i")
        self.event = array("i")
        self.live: dict[int, tuple[int, int]] = {}
        """address → (allocation, index of the op that made it)"""
        self.pools: dict[PoolId, int] = {DEFAULT_POOL: 0}
        self.allocations = 0
        self.releases: Releases = explain_releases(trace)
        self.fatal_oom = _fatal_oom(trace)
        self.now = -1

    def add(self, op: Op, allocation: int = 0, size: int = 0, stream: int = 0, pool: int = 0) -> None:
        self.op.append(op)
        self.allocation.append(allocation)
        self.size.append(size)
        self.stream.append(stream)
        self.pool.append(pool)
        self.event.append(self.now)

    def allocate(self, size: int, stream: int, pool: PoolId) -> int:
        number = self.allocations
        self.allocations += 1
        index = self.pools.setdefault(pool, len(self.pools))
        self.add(Op.ALLOC, number, size, stream, index)
        return number

    def rebuild_initial_state(self) -> None:
        """Recreates the segments that existed when recording began, block by block.

        Until all of them stand, free blocks are held by fillers: each segment is then the only free memory while it
        is carved, so the layout comes out as recorded. What settings with other rules leave unused of the segments
        is given back before the fillers go.
        """
        segments = oldest_first(self.trace.initial_segments)
        if not segments:
            return
        fillers = [filler for segment in segments for filler in self._carve(segment)]
        for segment in segments:
            self._fill_in(segment)
        self.add(Op.EMPTY_CACHE)
        for number in fillers:
            self.add(Op.FREE, number)
        for segment in segments:
            for block in segment.blocks:
                if block.state == "active_pending_free":
                    self._free_later(block.address)
        self.add(Op.BEGIN)

    def _carve(self, segment: Segment) -> list[int]:
        """Requests that make `segment` again; the numbers of those that stand for free blocks."""
        if is_made_whole(segment):
            self.add(Op.FREE, self.allocate(segment.size_bytes, segment.stream, segment.pool))
        fillers = []
        for size, block in pieces_of(segment):
            number = self.allocate(size, segment.stream, segment.pool)
            if block is None:
                fillers.append(number)
            else:
                self.live[block.address] = (number, len(self.op) - 1)
        return fillers

    def _fill_in(self, segment: Segment) -> None:
        """Asks for each live block once more, now for the bytes that were requested: only its own place is free."""
        for block in segment.blocks:
            if block.state != "inactive" and 0 < block.requested_bytes < block.size_bytes:
                self.add(Op.FREE, self.live[block.address][0])
                number = self.allocate(block.requested_bytes, segment.stream, segment.pool)
                self.live[block.address] = (number, len(self.op) - 1)

    def add_events(self) -> None:
        events = self.trace.events
        actions, addresses, sizes = events.action.tolist(), events.address.tolist(), events.size.tolist()
        streams, pools = events.stream.tolist(), events.pool.tolist()
        skip_completion = -1
        for index, action in enumerate(actions):
            self.now = index
            if action == Action.ALLOC:
                pool = self.trace.pools[pools[index]] if pools[index] >= 0 else DEFAULT_POOL
                number = self.allocate(sizes[index], streams[index], pool)
                self.live[addresses[index]] = (number, len(self.op) - 1)
            elif action == Action.FREE_REQUESTED:
                after = index + 1
                done = after < len(actions) and actions[after] == Action.FREE_COMPLETED
                if done and addresses[after] == addresses[index]:
                    self._free(addresses[index])
                    skip_completion = after
                else:
                    self._free_later(addresses[index])
            elif action == Action.FREE_COMPLETED:
                if index != skip_completion:
                    self._complete(addresses[index])
            elif action in (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP):
                self._give_back(index)
            elif action == Action.OOM:
                pool = self.trace.pools[pools[index]] if pools[index] >= 0 else DEFAULT_POOL
                self.allocate(sizes[index], streams[index], pool)
                if index != self.fatal_oom:
                    self.op[-1] = Op.TRIED_ALLOC

    def _give_back(self, index: int) -> None:
        """What made the allocator release memory at event `index`, as far as the program did."""
        for pool in self.releases.ended_pools.get(index, ()):
            self.add(Op.END_POOL, pool=self.pools.setdefault(pool, len(self.pools)))
        if index in self.releases.empty_cache_events:
            self.add(Op.EMPTY_CACHE)

    def _free(self, address: int) -> None:
        found = self.live.pop(address, None)
        if found is not None:
            self.add(Op.FREE, found[0])

    def _free_later(self, address: int) -> None:
        found = self.live.get(address)
        if found is not None:
            self.op[found[1]] = Op.TRACKED_ALLOC
            self.add(Op.PENDING_FREE, found[0])

    def _complete(self, address: int) -> None:
        found = self.live.pop(address, None)
        if found is None:
            return
        was_requested = self.op[found[1]] == Op.TRACKED_ALLOC
        self.add(Op.COMPLETE if was_requested else Op.FREE, found[0])

    def finish(self) -> Program:
        program = Program(
            op=self.op,
            allocation=self.allocation,
            size=self.size,
            stream=self.stream,
            pool=self.pool,
            event=self.event,
            allocations=self.allocations,
            pools=tuple(self.pools),
            segments=_recorded_segments(self.trace),
            notes=self._notes(),
        )
        return replace(program, steps=_steps_in_ops(find_steps(self.trace), self.event))

    def _notes(self) -> tuple[str, ...]:
        notes = [*self.trace.missing, *self.releases.notes]
        if self.trace.initial_segments:
            notes.append(
                f"{len(self.trace.initial_segments)} segments that existed before recording were rebuilt as they "
                "lay at its start"
            )
        return tuple(notes)


def _fatal_oom(trace: Trace) -> int | None:
    """Event index of the OOM that ended the program: the last one, if nothing was allocated after it."""
    actions = trace.events.action
    ooms = (actions == Action.OOM).nonzero()[0]
    if not len(ooms):
        return None
    last = int(ooms[-1])
    return None if (actions[last:] == Action.ALLOC).any() else last


def _recorded_segments(trace: Trace) -> tuple[tuple[int, int], ...]:
    before = [segment for segment in oldest_first(trace.initial_segments) if not segment.is_expandable]
    events = trace.events
    made = events.action == Action.SEGMENT_ALLOC
    recorded = zip(events.address[made].tolist(), events.size[made].tolist(), strict=True)
    return (*((segment.address, segment.size_bytes) for segment in before), *recorded)


def _steps_in_ops(steps: Steps, op_events: Iterable[int]) -> Steps:
    """`steps` with its starts as op indices instead of event indices."""
    starts = []
    pending = list(steps.starts)
    for index, event in enumerate(op_events):
        while pending and event >= pending[0]:
            starts.append(index)
            pending.pop(0)
    return replace(steps, starts=tuple(starts))


# Kinds of runs beyond the single ops; shared with worker.py.
_MARK, _PLAIN = 9, 10


def runs_of(program: Program) -> dict[str, array[int]]:
    """The program cut where the interpreter is needed: columns run_kind, run_begin, run_end, run_stream.

    A plain run holds allocs on one stream in the default pool, and frees; it is executed in C. Every other op is
    a run of its own. A mark, an empty run, stands before each step: counters are read there.
    """
    runs = _Runs()
    marks = set(program.steps.starts)
    for index, kind in enumerate(program.op):
        if index in marks:
            runs.close(index)
            runs.append(_MARK, index, index, 0)
        if kind == Op.ALLOC and program.pool[index] == 0:
            runs.plain_alloc(index, program.stream[index])
        elif kind != Op.FREE:
            runs.close(index)
            runs.append(kind, index, index + 1, program.stream[index])
            runs.begin = index + 1
    runs.close(len(program))
    return runs.columns


class _Runs:
    """Columns of runs, and the plain run that is open: its first op and its stream (None: only frees so far)."""

    def __init__(self) -> None:
        self.columns = {
            "run_kind": array("B"),
            "run_begin": array("q"),
            "run_end": array("q"),
            "run_stream": array("Q"),
        }
        self.begin = 0
        self.stream: int | None = None

    def append(self, kind: int, begin: int, end: int, stream: int) -> None:
        for column, value in zip(self.columns.values(), (kind, begin, end, stream), strict=True):
            column.append(value)

    def plain_alloc(self, index: int, stream: int) -> None:
        if self.stream is not None and self.stream != stream:
            self.close(index)
        self.stream = stream

    def close(self, index: int) -> None:
        """Ends the open plain run before `index`; the next one begins there."""
        if index > self.begin:
            self.append(_PLAIN, self.begin, index, self.stream or 0)
        self.begin, self.stream = index, None
