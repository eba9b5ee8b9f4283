"""Structural truth of a trace: every free has its allocation, nothing overlaps, the end is what the events lead to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.trace.model import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hotbed.trace.model import Segment, Trace

SCHEMA: Final = 1
_MIN_BLOCK: Final = 512
_PER_KIND: Final = 10
_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class Problem:
    """One thing that cannot be true of a real allocator. `event` is its index, None where it is about a map or the file."""

    kind: str
    device: int | None
    event: int | None
    text: str

    def __str__(self) -> str:
        device = "" if self.device is None else f"device {self.device}: "
        event = "" if self.event is None else f"event {self.event}: "
        return device + event + self.text


@dataclass(frozen=True)
class Report:
    """What check() found: the first few problems of each kind, and how many there are of each."""

    problems: tuple[Problem, ...]
    counts: dict[str, int]

    def lines(self) -> list[str]:
        """A line for each problem, and one for each kind of which only the first were kept."""
        kept = Counter(problem.kind for problem in self.problems)
        more = [
            f"and {n - kept[kind]} more of kind {kind!r}" for kind, n in self.counts.items() if n > kept[kind]
        ]
        return [*map(str, self.problems), *more]

    def to_json(self) -> dict[str, Any]:
        """Plain containers, with `schema`."""
        return {
            "schema": SCHEMA,
            "counts": self.counts,
            "problems": [asdict(problem) for problem in self.problems],
        }


def check(traces: Sequence[Trace], defects: Sequence[str] = ()) -> Report:
    """Follows every event of each device from the map at the beginning to the map at the end.

    `defects` are problems of the file itself (loading.file_defects), to be listed first.
    """
    problems = [Problem("file", None, None, text) for text in defects]
    counts = Counter({"file": len(defects)} if defects else {})
    for trace in traces:
        walk = _Walk(trace)
        walk.follow()
        if trace.segments:
            walk.compare_final()
        for segment in (*trace.initial_segments, *trace.segments):
            walk.check_tiling(segment)
        problems += walk.problems
        counts += walk.counts
    return Report(tuple(problems), dict(counts))


@dataclass
class _Live:
    """A block that a program holds, or, once `pending`, one that waits for other streams."""

    size: int
    end: int
    pending: bool = False


@dataclass
class _Range:
    """Memory taken from the driver, and the addresses of the blocks in it, in order."""

    end: int
    expandable: bool
    blocks: list[int] = field(default_factory=list)


class _Walk:
    """The memory map while the events go by."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.problems: list[Problem] = []
        self.counts: Counter[str] = Counter()
        self.event: int | None = None
        self.live: dict[int, _Live] = {}
        self.bases: list[int] = []
        self.ranges: dict[int, _Range] = {}
        for segment in trace.initial_segments:
            self.add_range(segment.address, segment.end, segment.is_expandable)
            for block in segment.blocks:
                if block.state != "inactive":
                    pending = block.state == "active_pending_free"
                    self.add_block(
                        block.address, block.requested_bytes, block.address + block.size_bytes, pending
                    )

    def report(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= _PER_KIND:
            self.problems.append(Problem(kind, self.trace.device, self.event, text))

    def follow(self) -> None:
        handlers: dict[int, Callable[[int, int], None]] = {
            Action.ALLOC: self.alloc,
            Action.FREE_REQUESTED: self.free_requested,
            Action.FREE_COMPLETED: self.free_completed,
            Action.SEGMENT_ALLOC: lambda base, size: self.take(base, size, expandable=False),
            Action.SEGMENT_FREE: self.give_back,
            Action.SEGMENT_MAP: lambda base, size: self.take(base, size, expandable=True),
            Action.SEGMENT_UNMAP: self.give_back,
        }
        for index, action, address, size in _rows(self.trace):
            handler = handlers.get(action)
            if handler is not None:
                self.event = index
                handler(address, size)
        self.event = None
        self.check_time()

    def check_time(self) -> None:
        known = self.trace.events.time_us[self.trace.events.time_us > 0]
        back = np.flatnonzero(np.diff(known) < -1000)
        for index in back.tolist():
            self.event = index + 1
            self.report("time", f"time goes back by {int(known[index] - known[index + 1]) / 1000:.1f} ms")
        self.event = None

    def around(self, address: int) -> _Range | None:
        """The memory from the driver that `address` lies in."""
        at = bisect_right(self.bases, address) - 1
        found = self.ranges[self.bases[at]] if at >= 0 else None
        return found if found is not None and address < found.end else None

    def add_block(self, address: int, size: int, end: int, pending: bool = False) -> None:
        around = self.around(address)
        if around is None:
            self.report("outside", f"block {address:#x} lies in no segment")
        else:
            at = bisect_left(around.blocks, address)
            before = self.live.get(around.blocks[at - 1]) if at else None
            if (before is not None and before.end > address) or (
                at < len(around.blocks) and around.blocks[at] < end
            ):
                self.report("overlap", f"block {address:#x} ({size} bytes) overlaps a block in use")
            if end > around.end:
                self.report("outside", f"block {address:#x} ({size} bytes) ends outside its segment")
            around.blocks.insert(at, address)
        self.live[address] = _Live(size, end, pending)

    def alloc(self, address: int, size: int) -> None:
        if address in self.live:
            self.report("pair", f"alloc at {address:#x}, where a block is in use")
            self.remove(address)
        self.add_block(address, size, address + max(_MIN_BLOCK, -(-size // _MIN_BLOCK) * _MIN_BLOCK))

    def free_requested(self, address: int, size: int) -> None:
        block = self.live.get(address)
        if block is None:
            self.report("pair", f"free of {address:#x}, where no block is in use")
        elif block.pending:
            self.report("pair", f"second free of {address:#x}")
        else:
            if block.size != size:
                self.report("pair", f"free of {address:#x} with {size} bytes, allocated with {block.size}")
            block.pending = True

    def free_completed(self, address: int, size: int) -> None:
        block = self.live.get(address)
        if block is None or not block.pending:
            self.report("pair", f"completed free of {address:#x}, which nobody requested")
        if block is not None:
            self.remove(address)

    def remove(self, address: int) -> None:
        del self.live[address]
        around = self.around(address)
        if around is not None:
            at = bisect_left(around.blocks, address)
            if at < len(around.blocks) and around.blocks[at] == address:
                del around.blocks[at]

    def add_range(self, base: int, end: int, expandable: bool) -> None:
        insort(self.bases, base)
        self.ranges[base] = _Range(end, expandable)

    def take(self, base: int, size: int, expandable: bool) -> None:
        end = base + size
        at = bisect_left(self.bases, base)
        inside = at < len(self.bases) and self.bases[at] < end
        before = self.ranges[self.bases[at - 1]] if at else None
        if inside or (before is not None and before.end > base):
            self.report("segment", f"{size} bytes at {base:#x} are taken from the driver a second time")
            return
        if before is not None and expandable and before.expandable and before.end == base:
            before.end = end
            base = self.bases[at - 1]
        else:
            self.add_range(base, end, expandable)
        self.join_next(base)

    def join_next(self, base: int) -> None:
        """Expandable ranges that touch are one."""
        this = self.ranges[base]
        following = self.ranges.get(this.end)
        if following is not None and this.expandable and following.expandable:
            self.bases.remove(this.end)
            del self.ranges[this.end]
            this.blocks += following.blocks
            this.end = following.end

    def give_back(self, base: int, size: int) -> None:
        end = base + size
        around = self.around(base)
        if around is None or end > around.end:
            self.report("segment", f"{size} bytes at {base:#x} go back to the driver, which never gave them")
            return
        used = around.blocks[bisect_left(around.blocks, base) : bisect_left(around.blocks, end)]
        if used:
            self.report(
                "segment", f"{size} bytes at {base:#x} go back to the driver with {len(used)} blocks in use"
            )
        start = self.bases[bisect_right(self.bases, base) - 1]
        left = around.blocks[: bisect_left(around.blocks, base)]
        right = around.blocks[bisect_left(around.blocks, end) :]
        self.bases.remove(start)
        del self.ranges[start]
        for low, high, blocks in ((start, base, left), (end, around.end, right)):
            if low < high:
                self.add_range(low, high, around.expandable)
                self.ranges[low].blocks = blocks

    def compare_final(self) -> None:
        """The map that the events lead to against the map that was written at the end."""
        ours = {(base, found.end) for base, found in self.ranges.items()}
        theirs = _merged(self.trace.segments)
        for base, end in sorted(theirs - ours):
            self.report(
                "final",
                f"segment {base:#x} ({end - base} bytes) of the final map is not what the events made",
            )
        for base, end in sorted(ours - theirs):
            self.report("final", f"segment {base:#x} ({end - base} bytes) is not in the final map")
        blocks = {
            block.address: block
            for segment in self.trace.segments
            for block in segment.blocks
            if block.state != "inactive"
        }
        for address in sorted(blocks.keys() - self.live.keys()):
            self.report("final", f"block {address:#x} of the final map was never allocated")
        for address, live in sorted(self.live.items()):
            block = blocks.get(address)
            state = "active_pending_free" if live.pending else "active_allocated"
            if block is None:
                self.report("final", f"block {address:#x} is in use, but not in the final map")
            elif (block.state, block.requested_bytes) != (state, live.size):
                self.report(
                    "final", f"block {address:#x} is {state} with {live.size} bytes, the final map differs"
                )

    def check_tiling(self, segment: Segment) -> None:
        position = segment.address
        for block in segment.blocks:
            if block.address != position:
                self.report("tiling", f"the blocks of segment {segment.address:#x} leave a hole or overlap")
                return
            position += block.size_bytes
        if segment.blocks and position != segment.end:
            self.report("tiling", f"the blocks of segment {segment.address:#x} do not fill it")


def _merged(segments: tuple[Segment, ...]) -> set[tuple[int, int]]:
    """Start and end of each segment, expandable neighbours that touch taken as one."""
    merged: list[list[int]] = []
    before = None
    for segment in sorted(segments, key=lambda segment: segment.address):
        touches = before is not None and before.is_expandable and segment.is_expandable
        if touches and merged[-1][1] == segment.address:
            merged[-1][1] = segment.end
        else:
            merged.append([segment.address, segment.end])
        before = segment
    return {(start, end) for start, end in merged}


def _rows(trace: Trace) -> Iterator[tuple[int, int, int, int]]:
    """(index, action, address, size) of every event, without a list of all of them."""
    events = trace.events
    for start in range(0, len(events), _PIECE):
        piece = slice(start, start + _PIECE)
        columns = (events.action[piece], events.address[piece], events.size[piece])
        yield from zip(range(start, start + _PIECE), *(column.tolist() for column in columns), strict=False)
