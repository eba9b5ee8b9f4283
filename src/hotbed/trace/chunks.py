"""Walks through the chunks of an .hbt file, up to the last one that is whole."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import zstandard

from hotbed.errors import TraceError
from hotbed.trace import layout
from hotbed.trace.layout import Encoding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.trace.source import Buffer

# A chunk holds at most some million rows; a larger one would be a decompression bomb.
_UNPACKED_LIMIT: Final = 1 << 30


@dataclass(frozen=True)
class Chunk:
    """One chunk: `payload` is decoded, `offset` the byte in the file at which it begins."""

    kind: bytes
    payload: bytes
    offset: int


@dataclass(frozen=True)
class Tail:
    """Why reading ended before the file did; `size_bytes` are left out."""

    offset: int
    size_bytes: int
    reason: str


def walk(data: Buffer) -> Iterator[Chunk | Tail]:
    """Every whole chunk in order, then a Tail where the rest cannot be read. Raises TraceError for a bad header."""
    _check_header(data)
    position = layout.HEADER.size
    while position < len(data):
        found = _chunk_at(data, position)
        yield found
        if isinstance(found, Tail):
            return
        position += layout.CHUNK.size + _stored(data, position)


def _check_header(data: Buffer) -> None:
    if len(data) < layout.HEADER.size:
        raise TraceError(
            "the .hbt file ends inside its header", hint="the recording never wrote anything: repeat it"
        )
    _, version, _ = layout.HEADER.unpack_from(data)
    if version != layout.VERSION:
        raise TraceError(
            f"the .hbt file has format version {version}, this hotbed reads version {layout.VERSION}",
            hint="pip install --upgrade hotbed",
        )


def _stored(data: Buffer, position: int) -> int:
    stored: int = layout.CHUNK.unpack_from(data, position)[2]
    return stored


def _chunk_at(data: Buffer, position: int) -> Chunk | Tail:
    left = len(data) - position
    if left < layout.CHUNK.size:
        return Tail(position, left, "the file ends inside a chunk")
    kind, encoding, stored, unpacked, crc, _ = layout.CHUNK.unpack_from(data, position)
    if stored > left - layout.CHUNK.size:
        return Tail(position, left, "the file ends inside a chunk")
    start = position + layout.CHUNK.size
    payload = bytes(data[start : start + stored])
    head = bytes(data[position : position + layout.CHECKED])
    if zlib.crc32(payload, zlib.crc32(head)) != crc:
        return Tail(position, left, "the checksum of a chunk is wrong")
    decoded = _decoded(payload, encoding, unpacked)
    if decoded is None:
        return Tail(position, left, "a chunk cannot be unpacked")
    return Chunk(kind, decoded, position)


def _decoded(payload: bytes, encoding: int, unpacked: int) -> bytes | None:
    if unpacked > _UNPACKED_LIMIT:
        return None
    try:
        if encoding == Encoding.PLAIN:
            content = payload
        elif encoding == Encoding.ZLIB:
            content = zlib.decompressobj().decompress(payload, unpacked + 1)
        elif encoding == Encoding.ZSTD:
            # A frame that states its size is unpacked to that size, whatever limit is given.
            if zstandard.frame_content_size(payload) not in (-1, unpacked):
                return None
            content = zstandard.ZstdDecompressor().decompress(payload, max_output_size=max(unpacked, 1))
        else:
            return None
    except (zlib.error, zstandard.ZstdError, MemoryError):
        return None
    return content if len(content) == unpacked else None
