"""Tables of an .hbt file (strings, frames, stacks, pools) while it is written. Only the standard library."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from hotbed.trace import layout
from hotbed.trace.model import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotbed.trace.model import Segment


class Tables:
    """Tables by content, and the part of each that is not in the file yet."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.frames: dict[tuple[int, int, int], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.pools: dict[tuple[int, int], int] = {}
        self.written = dict.fromkeys(("strings", "frames", "stacks", "pools"), 0)

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def stack(self, frames: Sequence[tuple[str, int, str]]) -> int:
        if not frames:
            return NONE
        key = tuple(self.frame(*frame) for frame in frames)
        return self.stacks.setdefault(key, len(self.stacks))

    def frame(self, filename: str, line: int, name: str) -> int:
        key = (self.string(filename), line, self.string(name))
        return self.frames.setdefault(key, len(self.frames))

    def pool(self, first: int, second: int) -> int:
        return self.pools.setdefault((first, second), len(self.pools))

    def new(self) -> Iterable[tuple[bytes, bytes]]:
        """(chunk type, payload) of everything that is new; a payload counts as written once the next is asked for."""
        for name, kind, payload_of in (
            ("strings", layout.STRINGS, strings_payload),
            ("frames", layout.FRAMES, frames_payload),
            ("stacks", layout.STACKS, stacks_payload),
            ("pools", layout.POOLS, pools_payload),
        ):
            entries: Any = getattr(self, name)
            first = self.written[name]
            if len(entries) > first:
                added = len(entries)
                # Dicts keep the order of insertion, so the new entries are the last ones.
                yield kind, layout.PREFIX.pack(first) + payload_of(list(entries)[first:])
                self.written[name] = added

    def memory_map(self, segments: Iterable[Segment], stacks: Sequence[int]) -> bytes:
        rows = [array(code) for _, code, _ in layout.SEGMENT_COLUMNS]
        blocks = [array(code) for _, code, _ in layout.BLOCK_COLUMNS]
        for segment in segments:
            flags = layout.LARGE * segment.is_large + layout.EXPANDABLE * segment.is_expandable
            pool = self.pool(*segment.pool)
            values = (segment.address, segment.size_bytes, segment.stream, pool, flags, len(segment.blocks))
            for column, value in zip(rows, values, strict=True):
                column.append(value)
            for block in segment.blocks:
                stack = stacks[block.stack] if stacks and block.stack != NONE else block.stack
                state = self.string(block.state)
                row = (block.address, block.size_bytes, block.requested_bytes, state, stack)
                for column, value in zip(blocks, row, strict=True):
                    column.append(value)
        return layout.plain_table(layout.SEGMENT_COLUMNS, rows) + layout.plain_table(
            layout.BLOCK_COLUMNS, blocks
        )


def strings_payload(strings: Sequence[str]) -> bytes:
    """Lengths in bytes as a one-column table, then the texts, UTF-8 with lone surrogates allowed."""
    raw = [text.encode("utf-8", "surrogatepass") for text in strings]
    return _lengths(map(len, raw)) + b"".join(raw)


def frames_payload(frames: Sequence[tuple[int, int, int]]) -> bytes:
    """A table of frames."""
    columns = [
        array(code, values)
        for (_, code, _), values in zip(layout.FRAME_COLUMNS, zip(*frames, strict=True), strict=True)
    ]
    return layout.plain_table(layout.FRAME_COLUMNS, columns)


def stacks_payload(stacks: Sequence[Sequence[int]]) -> bytes:
    """Lengths as a one-column table, then the frame indices of all stacks."""
    frames = array("I", [frame for stack in stacks for frame in stack])
    return _lengths(map(len, stacks)) + layout.little_endian(frames)


def pools_payload(pools: Sequence[tuple[int, int]]) -> bytes:
    """A table of pool ids."""
    columns = [
        array(code, values)
        for (_, code, _), values in zip(layout.POOL_COLUMNS, zip(*pools, strict=True), strict=True)
    ]
    return layout.plain_table(layout.POOL_COLUMNS, columns)


def _lengths(lengths: Iterable[int]) -> bytes:
    elements = array("I", lengths)
    return layout.table(len(elements), [layout.column(1, "I", layout.little_endian(elements))])
