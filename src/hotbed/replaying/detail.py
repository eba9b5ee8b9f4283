"""The inside of one replay: its timeline, and what the memory looked like when reserved was highest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hotbed.replaying.outcome import Fragmentation, FreeMemory, Timeline
from hotbed.replaying.program import Op, Program
from hotbed.replaying.releases import reserved_bytes, reserved_changes
from hotbed.replaying.steps import live_bytes
from hotbed.trace.model import DEFAULT_POOL, Action, PoolId, Segment, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hotbed.replaying.engine import RawResult

_TIMELINE_POINTS = 400
_SMALL_REQUEST_BYTES = 1 << 20
"""requests up to this size live in the small pool. Source: kSmallSize, allocator-semantics 1.2"""


PRIVATE_POOL = "private pool"
OTHER_STREAM = "cached for another stream"
WHOLE_SEGMENT = "whole cached segment, too small"
HOLE = "hole between live blocks, too small"
SPLIT_LIMIT = "large enough, but barred by max_split_size_mb"
OWN_SEGMENT = "rest of the segment that was taken for this request"
"""the reason of memory that became free only by serving the request: no waste"""


@dataclass(frozen=True)
class PeakRequest:
    """The request at which reserved memory reached its peak: the op that made it, and where it was served."""

    op: int
    size_bytes: int
    stream: int
    pool: PoolId
    address: int

    @property
    def is_large(self) -> bool:
        return self.size_bytes > _SMALL_REQUEST_BYTES


def peak_request(program: Program, history: Trace, raw: RawResult) -> PeakRequest | None:
    """The request behind the highest reserved level of the replay `raw`, which torch recorded as `history`.

    None when reserved memory never grew, or when the request failed (the history then has no allocation for it).
    """
    grown = reserved_changes(history) > 0
    if not grown.any():
        return None
    peak = int(np.argmax(np.where(grown, reserved_bytes(history), 0)))
    made = history.events.action == Action.ALLOC
    ordinal = int(made[:peak].sum())
    ops = _served_ops(program, raw)
    if ordinal >= len(ops) or ordinal >= int(made.sum()):
        return None
    op = int(ops[ordinal])
    address = int(history.events.address[np.flatnonzero(made)[ordinal]])
    return PeakRequest(op, program.size[op], program.stream[op], raw.pools[program.pool[op]], address)


def _served_ops(program: Program, raw: RawResult) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The ops that torch's history has an allocation for, those after a failed one included."""
    kinds = np.frombuffer(program.op, np.uint8)
    served = (kinds == Op.ALLOC) | (kinds == Op.TRACKED_ALLOC) | (kinds == Op.TRIED_ALLOC)
    served[: program.beginning] = False
    served[list(raw.refused)] = False
    return np.flatnonzero(served)


def timeline(program: Program, history: Trace, raw: RawResult) -> Timeline:
    """Requested and reserved bytes over the replay, by trace event; at most 400 points, extremes kept."""
    made = (history.events.action == Action.ALLOC).cumsum()
    ops = _served_ops(program, raw)
    requested, reserved = live_bytes(history), reserved_bytes(history)
    kept = _shape_points(requested, reserved)
    owner = [int(ops[min(max(int(made[index]) - 1, 0), len(ops) - 1)]) for index in kept] if len(ops) else []
    return Timeline(
        event=tuple(program.event[op] for op in owner),
        requested_bytes=tuple(int(requested[index]) for index in kept),
        reserved_bytes=tuple(int(reserved[index]) for index in kept),
    )


def _shape_points(
    requested: np.ndarray[tuple[int], np.dtype[np.int64]],
    reserved: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> list[int]:
    """Of each of 100 equal windows: first entry, lowest and highest requested, highest reserved."""
    kept: set[int] = set()
    for window in np.array_split(np.arange(len(requested)), _TIMELINE_POINTS // 4):
        if len(window):
            kept |= {
                int(window[0]),
                int(window[np.argmin(requested[window])]),
                int(window[np.argmax(requested[window])]),
                int(window[np.argmax(reserved[window])]),
            }
    return sorted(kept)


def fragmentation(program: Program, request: PeakRequest, segments: Iterable[Segment]) -> Fragmentation:
    """Takes apart the memory map right after `request` was served.

    `segments` is torch's snapshot at that moment; its free blocks are what the request could not use, since the
    allocator had to take new memory for it.
    """
    segments = tuple(segments)
    live = [block for segment in segments for block in segment.blocks if block.state != "inactive"]
    free: dict[str, list[int]] = {}
    for reason, size in _unusable(segments, request):
        free.setdefault(reason, []).append(size)
    return Fragmentation(
        event=program.event[request.op],
        request_bytes=request.size_bytes,
        reserved_bytes=sum(segment.size_bytes for segment in segments),
        live_requested_bytes=sum(block.requested_bytes for block in live),
        rounding_bytes=sum(block.size_bytes - block.requested_bytes for block in live),
        unusable=tuple(
            FreeMemory(reason, sum(sizes), len(sizes), max(sizes))
            for reason, sizes in sorted(free.items(), key=lambda item: -sum(item[1]))
        ),
    )


def _unusable(segments: tuple[Segment, ...], request: PeakRequest) -> Iterator[tuple[str, int]]:
    for segment in segments:
        whole = len(segment.blocks) == 1
        before = None
        for block in segment.blocks:
            if block.state == "inactive":
                is_rest = before == request.address
                reason = OWN_SEGMENT if is_rest else why_unusable(segment, whole, block.size_bytes, request)
                yield reason, block.size_bytes
            before = block.address


def why_unusable(segment: Segment, whole: bool, size_bytes: int, request: PeakRequest) -> str:
    """Why a free block of `segment` cannot serve `request`; `whole`: it is all of the segment."""
    if segment.pool != request.pool:
        return PRIVATE_POOL if segment.pool != DEFAULT_POOL else "default pool, request in a private pool"
    if segment.stream != request.stream:
        return OTHER_STREAM
    if segment.is_large != request.is_large:
        return "other size class (small and large requests share no segment)"
    if size_bytes < request.size_bytes:
        return WHOLE_SEGMENT if whole else HOLE
    return SPLIT_LIMIT
