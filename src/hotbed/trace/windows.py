"""Joins windows of one device's history into one trace; what lies between two windows is bridged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.trace.bridging import bridge
from hotbed.trace.marking.counts import Counted, Piece
from hotbed.trace.model import NONE, Action, Events, Frame, Segment, Trace
from hotbed.trace.recorded import Gap

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.bridging import Row
    from hotbed.trace.model import PoolId

_OURS = "/hotbed/recording/"
"""part of the path of files whose frames are the recorder's own"""


@dataclass(frozen=True)
class Window:
    """A stretch of history without gaps. `end`: (allocations, frees) counted at its end; `time_us` when it was read."""

    trace: Trace
    end: tuple[int, int]
    time_us: int


@dataclass(frozen=True)
class Joined:
    """One trace of all windows. `counted` finds places in it, `gaps` are in order."""

    trace: Trace
    counted: Counted
    gaps: tuple[Gap, ...]


def join(windows: Sequence[Window], begun: tuple[int, int]) -> Joined:
    """`windows` in order; `begun` is what was counted when recording began, before which nothing is missed."""
    joining = _Joining(begun)
    for window in windows:
        joining.add(window)
    return joining.finish(windows[0].trace)


class _Joining:
    """The tables and columns so far."""

    def __init__(self, begun: tuple[int, int]) -> None:
        self._stacks: dict[tuple[Frame, ...], int] = {}
        self._strings: dict[str, int] = {}
        self._pools: dict[PoolId, int] = {}
        self._parts: list[dict[str, npt.NDArray[Any]]] = []
        self._length = 0
        self._pieces: list[Piece] = []
        self._gaps: list[Gap] = []
        self._end = begun
        self._read_us = 0
        self._map: tuple[Segment, ...] | None = None
        self._initial: tuple[Segment, ...] = ()

    def add(self, window: Window) -> None:
        trace = window.trace
        stacks = np.array([*(self._stack(stack) for stack in trace.stacks), NONE], np.int32)
        before = _restacked(trace.initial_segments, stacks)
        columns = self._columns(trace, stacks)
        action = columns["action"]
        counts = [int(np.count_nonzero(action == kind)) for kind in (Action.ALLOC, Action.FREE_REQUESTED)]
        missed = [end - count - was for end, count, was in zip(window.end, counts, self._end, strict=True)]
        begun_us = self._read_us
        first_us = int(columns["time_us"][0]) if len(action) else window.time_us
        rows = [] if self._map is None else bridge(self._map, before)
        if max(missed) > 0 or rows:
            self._gaps.append(
                Gap(self._length + len(rows), len(rows), max(missed[0], 0), begun_us, max(first_us, begun_us))
            )
        self._bridge(rows, max(first_us, begun_us))
        if self._map is None:
            self._initial = before
        first = self._length
        self._append(columns)
        base = (window.end[0] - counts[0], window.end[1] - counts[1])
        self._pieces.append(Piece(first, self._length, base, window.end))
        self._end, self._read_us = window.end, window.time_us
        self._map = _restacked(trace.segments, stacks)

    def finish(self, like: Trace) -> Joined:
        columns: dict[str, Any] = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        events = Events(**columns)
        trace = replace(
            like,
            events=events,
            segments=self._map or (),
            initial_segments=self._initial,
            pools=tuple(self._pools),
            stacks=tuple(self._stacks),
            strings=tuple(self._strings),
        )
        return Joined(trace, Counted(events, tuple(self._pieces)), tuple(self._gaps))

    def _stack(self, stack: tuple[Frame, ...]) -> int:
        own = tuple(frame for frame in stack if _OURS not in frame.filename)
        return self._stacks.setdefault(own, len(self._stacks)) if own else NONE

    def _pool(self, pool: PoolId) -> int:
        return self._pools.setdefault(pool, len(self._pools))

    def _columns(self, trace: Trace, stacks: npt.NDArray[np.int32]) -> dict[str, npt.NDArray[Any]]:
        events = trace.events
        strings = np.array(
            [*(self._strings.setdefault(text, len(self._strings)) for text in trace.strings), NONE], np.int32
        )
        pools = np.array([*map(self._pool, trace.pools), NONE], np.int32)
        nothing = np.full(len(events), NONE, np.int32)
        contexts = nothing if events.compile_context is None else events.compile_context
        return {
            "action": events.action,
            "address": events.address,
            "size": events.size,
            "stream": events.stream,
            "pool": pools[events.pool],
            "time_us": events.time_us,
            "stack": stacks[events.stack],
            "metadata": strings[events.metadata],
            "step": nothing,
            "category": nothing,
            "compile_context": strings[contexts],
        }

    def _bridge(self, rows: list[Row], time_us: int) -> None:
        if not rows:
            return
        count = len(rows)
        action, address, size, stream, pool, stack = zip(*rows, strict=True)
        nothing = np.full(count, NONE, np.int32)
        self._append(
            {
                "action": np.array(action, np.uint8),
                "address": np.array(address, np.uint64),
                "size": np.array(size, np.int64),
                "stream": np.array(stream, np.uint64),
                "pool": np.array([self._pool(one) for one in pool], np.int32),
                "time_us": np.full(count, time_us, np.int64),
                "stack": np.array(stack, np.int32),
                **dict.fromkeys(("metadata", "step", "category", "compile_context"), nothing),
            }
        )

    def _append(self, columns: dict[str, npt.NDArray[Any]]) -> None:
        self._parts.append(columns)
        self._length += len(columns["action"])


def _restacked(segments: Sequence[Segment], stacks: npt.NDArray[np.int32]) -> tuple[Segment, ...]:
    return tuple(
        replace(
            segment,
            blocks=tuple(replace(block, stack=int(stacks[block.stack])) for block in segment.blocks),
        )
        for segment in segments
    )
