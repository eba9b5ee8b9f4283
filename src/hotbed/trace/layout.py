"""Bytes of the .hbt format, as docs/internals/hbt-format.md draws them. Only the standard library."""

from __future__ import annotations

import sys
import zlib
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from array import array

MAGIC: Final = b"\x89HBT\r\n\x1a\n"
VERSION: Final = 1
HEADER: Final = Struct("<8sII")
"""magic, version, zero"""
CHUNK: Final = Struct("<4sB3xQQII")
"""type, encoding, length as stored, length unpacked, CRC-32 of what comes before it and of the payload, zero"""
CHECKED: Final = 24
"""bytes of the chunk head that the checksum covers, before the payload"""
TABLE: Final = Struct("<II")
"""rows, columns"""
COLUMN: Final = Struct("<BcBxI")
"""column id, element type (as in Python's array), coding, bytes that follow"""
PREFIX: Final = Struct("<I")
"""device (events, maps, samples), or index of the first new entry (tables)"""


class Encoding(IntEnum):
    """How the payload of a chunk is stored."""

    PLAIN = 0
    ZLIB = 1
    ZSTD = 2


class Coding(IntEnum):
    """How the elements of a column are stored."""

    PLAIN = 0
    CONSTANT = 1
    """one element, which stands for all rows"""
    DELTA = 2
    """each element minus the one before it (the first minus 0), modulo 2 to the power of its width"""


# Chunk types. A reader must know those that begin with a capital; it may skip the others.
META: Final = b"META"
STRINGS: Final = b"STRS"
FRAMES: Final = b"FRMS"
STACKS: Final = b"STKS"
POOLS: Final = b"POOL"
EVENTS: Final = b"EVNT"
FINAL_MAP: Final = b"MAPE"
INITIAL_MAP: Final = b"MAPB"
NVML: Final = b"NVML"
DONE: Final = b"DONE"
RECORDED: Final = b"rcrd"
WINDOW: Final = b"SNAP"
SEEN: Final = b"SEEN"

# Columns of each table: (name, element type, value where the column is left out), id = place counted from 1.
# Part of the format: only append.
EVENT_COLUMNS: Final = (
    ("action", "B", 0),
    ("address", "Q", 0),
    ("size", "q", 0),
    ("stream", "Q", 0),
    ("pool", "i", -1),
    ("time_us", "q", 0),
    ("stack", "i", -1),
    ("metadata", "i", -1),
    ("step", "i", -1),
    ("category", "i", -1),
    ("compile_context", "i", -1),
)
FRAME_COLUMNS: Final = (("filename", "i", -1), ("line", "q", 0), ("name", "i", -1))
POOL_COLUMNS: Final = (("first", "Q", 0), ("second", "Q", 0))
SEGMENT_COLUMNS: Final = (
    ("address", "Q", 0),
    ("size", "q", 0),
    ("stream", "Q", 0),
    ("pool", "i", -1),
    ("flags", "B", 0),
    ("block_count", "I", 0),
)
BLOCK_COLUMNS: Final = (
    ("address", "Q", 0),
    ("size", "q", 0),
    ("requested", "q", 0),
    ("state", "i", -1),
    ("stack", "i", -1),
)
NVML_COLUMNS: Final = (("time_us", "q", 0), ("used_bytes", "q", 0), ("process_bytes", "q", -1))

MAX_ROWS: Final = 1 << 24
"""most rows of a table: rows can cost no bytes, so a reader needs a bound"""

LARGE: Final = 1
EXPANDABLE: Final = 2
"""bits of the segment column `flags`"""


def header() -> bytes:
    """The 16 bytes that begin a file."""
    return HEADER.pack(MAGIC, VERSION, 0)


def chunk(
    kind: bytes, payload: bytes, encoding: Encoding = Encoding.PLAIN, unpacked: int | None = None
) -> bytes:
    """A whole chunk. `payload` is as stored; `unpacked` its length before encoding, where that differs."""
    length = len(payload) if unpacked is None else unpacked
    head = CHUNK.pack(kind, encoding, len(payload), length, 0, 0)[:CHECKED]
    crc = zlib.crc32(payload, zlib.crc32(head))
    return CHUNK.pack(kind, encoding, len(payload), length, crc, 0) + payload


def column(number: int, code: str, data: bytes, coding: Coding = Coding.PLAIN) -> bytes:
    """A column of a table: its description and its elements, little-endian."""
    return COLUMN.pack(number, code.encode(), coding, len(data)) + data


def table(rows: int, columns: list[bytes]) -> bytes:
    """A table of `rows` rows from what column() made."""
    return TABLE.pack(rows, len(columns)) + b"".join(columns)


def plain_table(columns: tuple[tuple[str, str, int], ...], values: list[array[int]]) -> bytes:
    """A table of arrays; columns in which every row has the value of a missing column are left out."""
    rows = len(values[0])
    kept = [
        column(number, code, little_endian(elements))
        for number, ((_, code, absent), elements) in enumerate(zip(columns, values, strict=True), 1)
        if elements.count(absent) != rows
    ]
    return table(rows, kept)


def little_endian(elements: array[int]) -> bytes:
    """The bytes of an array in the byte order of the format."""
    if sys.byteorder == "big":
        elements = elements[:]
        elements.byteswap()
    return elements.tobytes()
