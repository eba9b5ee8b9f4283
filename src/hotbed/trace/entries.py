"""Turns the plain value of a snapshot pickle into a RawSnapshot; the readable twin of the native reader."""

from __future__ import annotations

from typing import Any, Final

from hotbed.errors import TraceError
from hotbed.trace.model import NONE, Action, Frame
from hotbed.trace.raw import RawColumns, RawSnapshot, columns_of, no_entries
from hotbed.trace.refusals import SNAPSHOT_HINT, Refusal

ACTIONS: Final = {action.name.lower(): int(action) for action in Action if action is not Action.OTHER}
NO_COMPILE_CONTEXT: Final = "N/A"
_MASK: Final = (1 << 64) - 1
# Segments of a hostile file may share one long list of blocks; a full 192 GB device has some 100,000.
_MAX_BLOCKS: Final = 1 << 22


def raw_from_value(value: Any) -> RawSnapshot:
    """The snapshot in `value`: torch.cuda.memory._snapshot()'s dict, or memory_snapshot()'s list of segments.

    Raises TraceError where the value is something else or an entry has a field of the wrong type.
    """
    root = {"segments": value} if type(value) is list else value
    if type(root) is not dict or ("segments" not in root and "device_traces" not in root):
        raise Refusal(0, 0).no_snapshot(type(root).__name__)
    tables = _Tables()
    devices = tuple(
        tables.columns(device, entries) for device, entries in enumerate(items(root, "device_traces"))
    )
    segments = [tables.segment(segment) for segment in items(root, "segments")]
    settings = root.get("allocator_settings")
    return RawSnapshot(
        devices=devices,
        segments=segments,
        settings=settings if type(settings) is dict else {},
        stacks=list(tables.stacks),
        strings=list(tables.strings),
        pools=list(tables.pools),
    )


def items(holder: dict[str, Any], key: str) -> list[Any]:
    """The list under `key`, empty where absent. Raises TraceError where it is no list."""
    found = holder.get(key, [])
    if type(found) is not list:
        raise TraceError(f"{key!r} is a {type(found).__name__}, not a list", hint=SNAPSHOT_HINT)
    return found


def number(holder: dict[str, Any], key: str, where: str) -> int:
    """The whole number under `key`, 0 where absent. Raises TraceError for other types, also of `holder`."""
    if type(holder) is not dict:
        raise TraceError(f"{where} is a {type(holder).__name__}, not a dictionary", hint=SNAPSHOT_HINT)
    found = holder.get(key, 0)
    if type(found) is not int:
        raise TraceError(f"{where}: {key!r} is a {type(found).__name__}, not a number", hint=SNAPSHOT_HINT)
    return found


class _Tables:
    """The tables that entries point into, each filled in order of first use."""

    def __init__(self) -> None:
        self.stacks: dict[tuple[Frame, ...], int] = {}
        self.strings: dict[str, int] = {}
        self.pools: dict[tuple[int, int], int] = {}
        # Frames and stacks are shared objects in the pickle: look each up once. The snapshot keeps them alive.
        self.known: dict[int, Any] = {}
        self.blocks = 0

    def columns(self, device: int, entries: Any) -> RawColumns:
        if type(entries) is not list:
            raise TraceError(f"the trace of device {device} is a {type(entries).__name__}, not a list")
        rows = [self.row(entry, f"entry {i} of device {device}") for i, entry in enumerate(entries)]
        return columns_of(zip(*rows, strict=True)) if rows else no_entries()

    def row(self, entry: Any, where: str) -> tuple[int, ...]:
        size, time_us = number(entry, "size", where), number(entry, "time_us", where)
        name = entry.get("action")
        if type(name) is not str:
            raise TraceError(f"{where} does not say its action", hint=SNAPSHOT_HINT)
        action = ACTIONS.get(name, int(Action.OTHER))
        address = "device_free" if action == Action.OOM and "device_free" in entry else "addr"
        if max(size, time_us) >= 1 << 63:
            raise TraceError(f"{where}: a number is out of range", hint=SNAPSHOT_HINT)
        return (
            action,
            number(entry, address, where) & _MASK,
            size,
            number(entry, "stream", where) & _MASK,
            time_us,
            self.pool(entry.get("pool_id")),
            self.stack(entry.get("frames")),
            self.string(entry.get("user_metadata")),
            self.string(entry.get("compile_context"), unless=NO_COMPILE_CONTEXT),
        )

    def segment(self, segment: Any) -> dict[str, Any]:
        number(segment, "device", "a segment")
        self.blocks += len(items(segment, "blocks"))
        if self.blocks > _MAX_BLOCKS:
            raise TraceError(f"the memory map has more than {_MAX_BLOCKS} blocks", hint=SNAPSHOT_HINT)
        blocks = [
            {**block, "frames": self.stack(block.get("frames"))} if type(block) is dict else block
            for block in items(segment, "blocks")
        ]
        return {**segment, "frames": self.stack(segment.get("frames")), "blocks": blocks}

    def pool(self, value: Any) -> int:
        pair = pool_of(value)
        return NONE if pair is None else self.pools.setdefault(pair, len(self.pools))

    def string(self, value: Any, unless: str = "") -> int:
        if type(value) is not str or value in ("", unless):
            return NONE
        return self.strings.setdefault(value, len(self.strings))

    def stack(self, frames: Any) -> int:
        if type(frames) is not list or not frames:
            return NONE
        known: int | None = self.known.get(id(frames))
        if known is None:
            stack = tuple(self.frame(frame) for frame in frames)
            known = self.known[id(frames)] = self.stacks.setdefault(stack, len(self.stacks))
        return known

    def frame(self, value: Any) -> Frame:
        if type(value) is not dict:
            return Frame("", 0, "")
        known: Frame | None = self.known.get(id(value))
        if known is None:
            filename, line, name = value.get("filename"), value.get("line"), value.get("name")
            known = self.known[id(value)] = Frame(
                filename if type(filename) is str else "",
                # Code that torch.compile makes has no line; torch writes -1 as unsigned then.
                line if type(line) is int and -(1 << 63) <= line < 1 << 63 else 0,
                name if type(name) is str else "",
            )
        return known


def pool_of(value: Any) -> tuple[int, int] | None:
    """The pool id in `value`, a pair of numbers (a list where JSON was in between); None for anything else."""
    if type(value) not in (tuple, list) or len(value) != 2:
        return None
    first, second = value
    if type(first) is not int or type(second) is not int:
        return None
    return first & _MASK, second & _MASK
