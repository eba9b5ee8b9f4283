"""Makes a large torch memory snapshot by repeating a small one: same stacks, later times, new objects.

    python benchmarks/make_snapshot.py OUT --mib 1024 [--seed-trace tests/data/h200/resnet50.frames.pickle.xz]

The file is what torch would write for a run that is so much longer: a pickle of protocol 4 in which every entry is
a dictionary of its own, every allocation has a stack list of its own, and frames and strings are shared.
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path
from typing import IO, Any

import numpy as np

from hotbed.trace.opcodes import read_plain_pickle
from hotbed.trace.source import open_source

SEED = Path(__file__).parent.parent / "tests/data/h200/resnet50.frames.pickle.xz"


class Emitter:
    """Writes pickle instructions and counts memo slots as a pickler does."""

    def __init__(self, slots: int = 0) -> None:
        self.out = bytearray()
        self.slots = slots
        self.known: dict[Any, int] = {}

    def memoize(self) -> int:
        self.out += b"\x94"
        self.slots += 1
        return self.slots - 1

    def get(self, slot: int) -> None:
        self.out += b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)

    def value(self, value: Any) -> None:
        """A plain value; strings are written once and referred to afterwards."""
        if isinstance(value, str):
            if value in self.known:
                return self.get(self.known[value])
            raw = value.encode()
            self.out += (
                b"\x8c" + bytes([len(raw)]) if len(raw) < 256 else b"X" + struct.pack("<I", len(raw))
            ) + raw
            self.known[value] = self.memoize()
        elif isinstance(value, dict):
            self.out += b"}"
            self.memoize()
            self.out += b"("
            for key, item in value.items():
                self.value(key)
                self.value(item)
            self.out += b"u"
        elif isinstance(value, list):
            self.out += b"]"
            self.memoize()
            self.items(value)
        elif isinstance(value, tuple):
            assert len(value) == 2
            for item in value:
                self.value(item)
            self.out += b"\x86"
        else:
            self.number(value)
        return None

    def items(self, values: list[Any]) -> None:
        if values:
            self.out += b"("
            for item in values:
                self.value(item)
            self.out += b"e"

    def number(self, value: Any) -> None:
        if value is None or value is True or value is False:
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif 0 <= value < 1 << 8:
            self.out += b"K" + bytes([value])
        elif 0 <= value < 1 << 16:
            self.out += b"M" + struct.pack("<H", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            self.out += b"\x8a" + bytes([len(raw)]) + raw


class Template:
    """One repetition of the entries as bytes, with the places where a later repetition differs."""

    def __init__(self, entries: list[dict[str, Any]], emitter: Emitter, frames: dict[int, int]) -> None:
        self.first_slot = emitter.slots
        emitter.out = bytearray()
        self.emitter, self.frames = emitter, frames
        self.times: list[int] = []
        self.references: list[int] = []
        self.lists: dict[int, int] = {}
        for start in range(0, len(entries), 1000):
            emitter.out += b"("
            for entry in entries[start : start + 1000]:
                self.entry(entry)
            emitter.out += b"e"
        self.bytes = np.frombuffer(bytes(emitter.out), np.uint8)
        self.slots = emitter.slots - self.first_slot
        self.span_us = entries[-1]["time_us"] - entries[0]["time_us"] + 1000

    def entry(self, entry: dict[str, Any]) -> None:
        emitter = self.emitter
        emitter.out += b"}"
        emitter.memoize()
        emitter.out += b"("
        for key, item in entry.items():
            emitter.value(key)
            if key == "time_us":
                self.times.append(len(emitter.out) + 2)
                emitter.out += b"\x8a\x07" + item.to_bytes(7, "little")
            elif key == "frames":
                self.stack(item)
            else:
                emitter.value(item)
        emitter.out += b"u"

    def stack(self, stack: list[dict[str, Any]]) -> None:
        emitter = self.emitter
        if id(stack) in self.lists:
            self.references.append(len(emitter.out) + 1)
            emitter.out += b"j" + struct.pack("<I", self.lists[id(stack)])
            return
        emitter.out += b"]"
        self.lists[id(stack)] = emitter.memoize()
        emitter.out += b"("
        for frame in stack:
            emitter.get(self.frames[id(frame)])
        emitter.out += b"e"

    def repeated(self, count: int) -> bytes:
        """The bytes of repetition `count`, 0 being the template itself."""
        content = self.bytes.copy()
        for places, width, step in ((self.times, 7, self.span_us), (self.references, 4, self.slots)):
            at = np.array(places, np.int64)[:, None] + np.arange(width)
            old = np.zeros((len(places), 8), np.uint8)
            old[:, :width] = content[at]
            new = old.view("<u8").ravel() + np.uint64(count * step)
            content[at] = new.view(np.uint8).reshape(-1, 8)[:, :width]
        return content.tobytes()


def closed(snapshot: dict[str, Any]) -> dict[str, Any]:
    """`snapshot` with its entries ended by those that give everything back: repetitions then begin where the last ended."""
    entries = list(snapshot["device_traces"][0])
    pattern, now = entries[-1], entries[-1]["time_us"]

    def add(action: str, address: int, size: int, frames: Any) -> None:
        time_us = now + len(entries)
        entries.append(
            {**pattern, "action": action, "addr": address, "size": size, "frames": frames, "time_us": time_us}
        )

    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                add("free_requested", block["address"], block["requested_size"], block["frames"])
                add("free_completed", block["address"], block["requested_size"], block["frames"])
    for segment in snapshot["segments"]:
        add("segment_free", segment["address"], segment["total_size"], [])
    return {**snapshot, "segments": [], "device_traces": [entries]}


def write(out: IO[bytes], snapshot: dict[str, Any], target_bytes: int) -> int:
    """Writes a snapshot of about `target_bytes` to `out`; returns how many entries it has."""
    entries = snapshot["device_traces"][0]
    emitter = Emitter()
    # Frames and strings first, in a list that is dropped again: every repetition may then refer to them.
    emitter.out += b"\x80\x04]("
    frames: dict[int, int] = {}
    for entry in entries:
        for word in [*entry, *(value for value in entry.values() if isinstance(value, str))]:
            emitter.value(word)
        for frame in entry.get("frames", []):
            if id(frame) not in frames:
                frames[id(frame)] = emitter.slots
                emitter.value(frame)
    emitter.out += b"e0}("
    for key in ("segments", "allocator_settings", "external_annotations"):
        emitter.value(key)
        emitter.value(snapshot[key])
    emitter.value("device_traces")
    emitter.out += b"]("
    emitter.out += b"]"
    written = out.write(emitter.out)
    template = Template(entries, emitter, frames)
    count = 0
    while written < target_bytes:
        written += out.write(template.repeated(count))
        count += 1
    out.write(b"eu.")
    return count * len(entries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--seed-trace", type=Path, default=SEED)
    parser.add_argument("--closed", action="store_true", help="end each repetition with nothing held")
    options = parser.parse_args()
    with open_source(options.seed_trace) as data:
        snapshot = read_plain_pickle(data)
    if options.closed:
        snapshot = closed(snapshot)
    with options.out.open("wb") as out:
        entries = write(out, snapshot, options.mib << 20)
    print(f"{options.out}: {options.out.stat().st_size} bytes, {entries} entries")


if __name__ == "__main__":
    main()
