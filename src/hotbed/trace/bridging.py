"""Events that were not recorded, made up from the memory map before a gap and the one after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hotbed.trace.model import PoolId, Segment

Row = tuple[Action, int, int, int, "PoolId", int]
"""action, address, size in bytes, stream, pool, stack"""


@dataclass(frozen=True)
class _Held:
    """A block in use: what its alloc event would say. `pending`: freed, but not complete."""

    requested_bytes: int
    stack: int
    pending: bool
    segment: Segment


_Range = tuple[int, int]
_Owner = tuple[bool, int, "PoolId"]
"""expandable, stream, pool"""


def bridge(before: Sequence[Segment], after: Sequence[Segment]) -> list[Row]:
    """Events that lead from the map `before` to the map `after`; none where they agree. Stacks index one table.

    A block with the same address, size and stack in both is taken to have lived through the gap.
    """
    old, new = _held(before), _held(after)
    rows: list[Row] = []
    for address, block in old.items():
        rows += _ended(address, block, new.get(address))
    rows += _segments(before, after)
    for address, block in new.items():
        rows += _begun(address, block, old.get(address))
    return rows


def _held(segments: Sequence[Segment]) -> dict[int, _Held]:
    return {
        block.address: _Held(
            block.requested_bytes, block.stack, block.state == "active_pending_free", segment
        )
        for segment in segments
        for block in segment.blocks
        if block.state != "inactive"
    }


def _same(old: _Held | None, new: _Held | None) -> bool:
    """Whether the block may have lived through; one whose free was pending before is no longer in use after it."""
    if old is None or new is None or old.requested_bytes != new.requested_bytes:
        return False
    known = NONE not in (old.stack, new.stack)
    return not (known and old.stack != new.stack) and (new.pending or not old.pending)


def _ended(address: int, old: _Held, new: _Held | None) -> Iterator[Row]:
    if _same(old, new):
        if new is not None and new.pending and not old.pending:
            yield _row(Action.FREE_REQUESTED, address, old)
        return
    if not old.pending:
        yield _row(Action.FREE_REQUESTED, address, old)
    yield _row(Action.FREE_COMPLETED, address, old)


def _begun(address: int, new: _Held, old: _Held | None) -> Iterator[Row]:
    if not _same(old, new):
        yield _row(Action.ALLOC, address, new)
        if new.pending:
            yield _row(Action.FREE_REQUESTED, address, new)


def _row(action: Action, address: int, block: _Held) -> Row:
    segment = block.segment
    return action, address, block.requested_bytes, segment.stream, segment.pool, block.stack


def _segments(before: Sequence[Segment], after: Sequence[Segment]) -> Iterator[Row]:
    """Memory that went back to the driver, then memory that came from it."""
    old, new = _ranges(before), _ranges(after)
    for owner, ranges in old.items():
        for low, high in _without(ranges, new.get(owner, []), owner):
            yield _taken(Action.SEGMENT_UNMAP if owner[0] else Action.SEGMENT_FREE, low, high, owner)
    for owner, ranges in new.items():
        for low, high in _without(ranges, old.get(owner, []), owner):
            yield _taken(Action.SEGMENT_MAP if owner[0] else Action.SEGMENT_ALLOC, low, high, owner)


def _taken(action: Action, low: int, high: int, owner: _Owner) -> Row:
    return action, low, high - low, owner[1], owner[2], NONE


def _ranges(segments: Sequence[Segment]) -> dict[_Owner, list[_Range]]:
    """[start, end) of what each owner has, by address."""
    found: dict[_Owner, list[_Range]] = {}
    for segment in sorted(segments, key=lambda segment: segment.address):
        owner = segment.is_expandable, segment.stream, segment.pool
        found.setdefault(owner, []).append((segment.address, segment.end))
    return found


def _without(ranges: list[_Range], others: list[_Range], owner: _Owner) -> Iterable[_Range]:
    """`ranges` without what is in `others` too; segments that are not expandable come and go as a whole."""
    if not owner[0]:
        known = set(others)
        return [found for found in ranges if found not in known]
    return _difference(ranges, others)


def _difference(ranges: list[_Range], others: list[_Range]) -> Iterator[_Range]:
    position = 0
    for start, end in ranges:
        low = start
        while position < len(others) and others[position][1] <= low:
            position += 1
        at = position
        while at < len(others) and others[at][0] < end:
            if others[at][0] > low:
                yield low, others[at][0]
            low = max(low, others[at][1])
            at += 1
        if low < end:
            yield low, end
