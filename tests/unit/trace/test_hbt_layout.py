"""The bytes of .hbt files, written out by hand as docs/internals/hbt-format.md describes them."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import pytest
import zstandard

from hotbed.errors import TraceError
from hotbed.trace import Action, Block, Frame, Segment, load_trace
from hotbed.trace.model import NvmlSample
from hotbed.trace.writer import TraceWriter

if TYPE_CHECKING:
    from pathlib import Path

HEADER = b"\x89HBT\r\n\x1a\n" + struct.pack("<II", 1, 0)


def chunk(kind: bytes, payload: bytes, encoding: int = 0, unpacked: int | None = None) -> bytes:
    head = struct.pack(
        "<4sB3xQQ", kind, encoding, len(payload), len(payload) if unpacked is None else unpacked
    )
    return head + struct.pack("<II", zlib.crc32(head + payload), 0) + payload


def column(number: int, code: str, coding: int, *values: int) -> bytes:
    data = struct.pack(f"<{len(values)}{code}", *values)
    return struct.pack("<BcBxI", number, code.encode(), coding, len(data)) + data


def table(rows: int, *columns: bytes) -> bytes:
    return struct.pack("<II", rows, len(columns)) + b"".join(columns)


def prefix(number: int) -> bytes:
    return struct.pack("<I", number)


STRINGS = chunk(b"STRS", prefix(0) + table(3, column(1, "I", 0, 4, 1, 16)) + b"a.pyfactive_allocated")
FRAMES = chunk(
    b"FRMS", prefix(0) + table(1, column(1, "i", 0, 0), column(2, "q", 0, 42), column(3, "i", 0, 1))
)
STACKS = chunk(b"STKS", prefix(0) + table(1, column(1, "I", 0, 1)) + prefix(0))
POOLS = chunk(b"POOL", prefix(0) + table(1))
META = chunk(b"META", b'{"device": 1, "torch_version": "2.14.1", "settings": "backend:native", "rank": 3}')
EVENTS = chunk(
    b"EVNT",
    prefix(1)
    + table(
        3,
        column(1, "B", 0, 3, 0, 1),
        column(2, "Q", 1, 0x7F0000000000),
        column(3, "q", 0, 2 << 20, 512, 512),
        column(6, "q", 2, 1000, 10, 5),
        column(7, "i", 0, -1, 0, 0),
        column(200, "i", 0, 1, 2, 3),
    ),
)
MAP = chunk(
    b"MAPE",
    prefix(1)
    + table(
        1,
        column(1, "Q", 0, 0x7F0000000000),
        column(2, "q", 0, 2 << 20),
        column(4, "i", 0, 0),
        column(5, "B", 0, 2),
        column(6, "I", 0, 1),
    )
    + table(
        1,
        column(1, "Q", 0, 0x7F0000000000),
        column(2, "q", 0, 2 << 20),
        column(3, "q", 0, 512),
        column(4, "i", 0, 2),
    ),
)
NVML = chunk(
    b"NVML",
    prefix(1) + table(2, column(1, "q", 2, 1000, 500), column(2, "q", 1, 7), column(3, "q", 0, 5, -1)),
)
DONE = chunk(b"DONE", b'{"events": 3}')


def test_a_file_written_by_hand_is_read(tmp_path: Path) -> None:
    path = tmp_path / "hand.hbt"
    path.write_bytes(
        HEADER + META + STRINGS + FRAMES + STACKS + POOLS + EVENTS + chunk(b"note", b"?") + MAP + NVML + DONE
    )
    trace = load_trace(path)
    assert (trace.device, trace.torch_version, trace.settings, trace.rank) == (
        1,
        "2.14.1",
        "backend:native",
        3,
    )
    assert trace.events.action.tolist() == [Action.SEGMENT_ALLOC, Action.ALLOC, Action.FREE_REQUESTED]
    assert trace.events.address.tolist() == [0x7F0000000000] * 3
    assert trace.events.time_us.tolist() == [1000, 1010, 1015]
    assert trace.events.step.tolist() == trace.events.pool.tolist() == [-1, -1, -1]
    assert trace.events.stack.tolist() == [-1, 0, 0]
    assert trace.stacks == ((Frame("a.py", 42, "f"),),)
    held = Block(0x7F0000000000, 2 << 20, 512, "active_allocated", -1)
    assert trace.segments == (Segment(0x7F0000000000, 2 << 20, 0, False, True, (0, 0), (held,)),)
    assert trace.nvml == (NvmlSample(1000, 7, 5), NvmlSample(1500, 7, None))
    assert trace.missing == ()


@pytest.mark.parametrize(("encoding", "pack"), [(1, zlib.compress), (2, zstandard.compress)])
def test_payloads_may_be_compressed(encoding: int, pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    payload = prefix(0) + table(2, column(3, "q", 0, 512, 1024))
    path = tmp_path / "packed.hbt"
    path.write_bytes(HEADER + chunk(b"EVNT", pack(payload), encoding, len(payload)) + DONE)
    assert load_trace(path).events.size.tolist() == [512, 1024]


def test_the_writer_writes_these_bytes(tmp_path: Path) -> None:
    path = tmp_path / "written.hbt"
    with TraceWriter(path) as writer:
        stack = writer.stack([("a.py", 42, "f")])
        writer.event(Action.SEGMENT_ALLOC, device=1, size=2 << 20, time_us=1000)
        writer.event(Action.ALLOC, device=1, size=512, time_us=1010, stack=stack)
    events = prefix(1) + table(
        2,
        column(1, "B", 0, 3, 0),
        column(3, "q", 0, 2 << 20, 512),
        column(6, "q", 0, 1000, 1010),
        column(7, "i", 0, -1, 0),
    )
    strings = chunk(b"STRS", prefix(0) + table(2, column(1, "I", 0, 4, 1)) + b"a.pyf")
    done = chunk(b"DONE", b'{"events": 2}')
    assert path.read_bytes() == HEADER + strings + FRAMES + STACKS + chunk(b"EVNT", events) + done


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER[:9], "ends inside its header"),
        (HEADER, "holds no events"),
        (b"\x89HBT\r\n\x1a\n" + struct.pack("<II", 2, 0), "format version 2, this hotbed reads version 1"),
        (HEADER + chunk(b"NEWS", b""), "a chunk 'NEWS' that this hotbed does not know"),
    ],
)
def test_files_of_another_time_are_refused_in_words(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "other.hbt"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=message) as caught:
        load_trace(path)
    assert caught.value.hint


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        prefix(0),
        prefix(0) + struct.pack("<II", 1 << 30, 0),
        prefix(0) + table(2, column(3, "q", 0, 1)),
        prefix(0) + table(2, column(3, "i", 0, 1, 2)),
        prefix(0) + table(1, column(3, "q", 9, 1)),
        prefix(0) + table(1, column(7, "i", 0, 0)),
        prefix(0) + table(1, column(5, "i", 0, -2)),
        prefix(0) + struct.pack("<II", 1, 9),
        prefix(0) + table(1, struct.pack("<BcBxI", 3, b"q", 0, 1 << 30)),
    ],
)
def test_a_chunk_that_breaks_the_layout_ends_the_trace(payload: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.hbt"
    good = chunk(b"EVNT", prefix(0) + table(1, column(3, "q", 0, 512)))
    path.write_bytes(HEADER + good + chunk(b"EVNT", payload) + good + DONE)
    trace = load_trace(path)
    assert trace.events.size.tolist() == [512]
    assert f"the chunk at byte {len(HEADER + good)} is damaged" in trace.missing[0]


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotbed.trace.reader.unpack_limit_bytes", lambda: 1 << 20)
    path = tmp_path / "bomb.hbt"
    path.write_bytes(HEADER + chunk(b"EVNT", prefix(0) + table(1 << 20, column(3, "q", 1, 512))) + DONE)
    with pytest.raises(TraceError, match=r"unpacks to more than 1\.0 MiB"):
        load_trace(path)
