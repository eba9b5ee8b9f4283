"""Opens a trace file: tells by its content what it is, undoes compression, and bounds what that may cost."""

from __future__ import annotations

import gzip
import lzma
import mmap
import os
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, Protocol

import zstandard

from hotbed.errors import TraceError
from hotbed.trace.layout import MAGIC
from hotbed.trace.refusals import SNAPSHOT_HINT
from hotbed.units import GIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    class Readable(Protocol):
        """What the decompressors have in common."""

        def read(self, size: int, /) -> bytes: ...


Buffer = bytes | bytearray | mmap.mmap

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\x00"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_FOREIGN: Final = {
    b"PK\x03\x04": (
        "is a zip archive, as torch.save and torch.package write them, and not a memory snapshot",
        f"if a snapshot was saved with torch.save, load it there and write it with pickle.dump; {SNAPSHOT_HINT}",
    ),
    b"BZh": ("is compressed with bzip2", "hotbed reads gzip, xz and zstd: run bunzip2 first"),
    b"SQLite format 3": ("is an SQLite database", SNAPSHOT_HINT),
}
_PIECE: Final = 1 << 20
_HEAD: Final = 16
# A byte of zstd can unpack to thousands, all at once.
_ZSTD_PIECE: Final = 1 << 12


@contextmanager
def open_source(path: Path) -> Iterator[Buffer]:
    """The uncompressed bytes of `path`: mapped where the file is plain, decompressed into memory otherwise.

    The kind is told by content, never by name. Raises TraceError for empty and foreign files, damaged
    compression, and for files that unpack to more than `unpack_limit_bytes()`; OSError where it cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(0)
        _refuse_foreign(head)
        unpacked = _unpacker(file, head)
        if unpacked is None:
            refuse_content(head)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped
        else:
            yield _unpack(unpacked)


def unpack_limit_bytes() -> int:
    """Most bytes that a compressed file may unpack to: half of this machine's memory, at most 16 GiB."""
    return min(16 * GIB, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


def _refuse_foreign(head: bytes) -> None:
    if not head:
        raise TraceError("the file is empty", hint=SNAPSHOT_HINT)
    for magic, (what, hint) in _FOREIGN.items():
        if head.startswith(magic):
            raise TraceError(f"it {what}", hint=hint)


def _unpacker(file: IO[bytes], head: bytes) -> Readable | None:
    if head.startswith(_GZIP):
        return gzip.open(file)
    if head.startswith(_XZ):
        return lzma.open(file)
    if head.startswith(_ZSTD):
        return _Zstandard(file)
    return None


class _Zstandard:
    """Frames of zstd one after the other; unlike zstandard's own reader it notices a frame that is cut short."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        # A frame may ask for a window of 2 GiB; zstd's own tool stops at 128 MiB too.
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self._frame = self._decompressor.decompressobj()

    def read(self, _: int, /) -> bytes:
        """The next piece, empty at the end. Pieces are as long as a few KiB of input make them."""
        while True:
            if self._frame.eof:
                packed = self._frame.unused_data or self._file.read(_ZSTD_PIECE)
                if not packed:
                    return b""
                self._frame = self._decompressor.decompressobj()
            else:
                packed = self._file.read(_ZSTD_PIECE)
                if not packed:
                    raise zstandard.ZstdError("a frame is cut short")
            piece = self._frame.decompress(packed)
            if piece:
                return piece


def _unpack(unpacked: Readable) -> bytearray:
    limit = unpack_limit_bytes()
    content = bytearray()
    try:
        while piece := unpacked.read(_PIECE):
            begun = len(content) >= _HEAD
            content += piece
            if not begun:
                # What is no trace need not be unpacked to the end.
                refuse_content(bytes(content[:_HEAD]))
            if len(content) > limit:
                raise TraceError(
                    f"it unpacks to more than {format_size(limit)}, half of this machine's memory or 16 GiB",
                    hint="unpack it to disk first; a plain file is read in place",
                )
    except (EOFError, OSError, lzma.LZMAError, zlib.error, zstandard.ZstdError) as error:
        raise TraceError(
            f"the compressed data is damaged or cut short ({error})", hint="copy the file again"
        ) from error
    if not content:
        raise TraceError("the file is empty once unpacked", hint=SNAPSHOT_HINT)
    return content


def refuse_content(head: bytes) -> None:
    """Raises TraceError where uncompressed content starting with `head` is neither a pickle nor .hbt."""
    _refuse_foreign(head)
    if head.startswith(MAGIC) or head[:1] in _PICKLE_STARTS:
        return
    text = head.lstrip()[:1]
    what = {b"{": "JSON", b"[": "JSON", b"<": "HTML or XML"}.get(text)
    raise TraceError(
        f"it is {what or 'neither a torch memory snapshot (pickle) nor an .hbt trace'}"
        + (", not a torch memory snapshot (pickle) or .hbt trace" if what else ""),
        hint=SNAPSHOT_HINT,
    )


# First bytes of a pickle: PROTO, or in protocols 0 and 1 MARK, EMPTY_DICT, EMPTY_LIST, or what hostile ones begin with.
_PICKLE_STARTS: Final = (b"\x80", b"(", b"}", b"]", b"c")
