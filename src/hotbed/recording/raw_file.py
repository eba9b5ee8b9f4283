"""The file of a recording that is under way: windows of history, and rows of what was seen. See hbt-format.md."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from hotbed.trace import layout
from hotbed.trace.chunk_file import ChunkFile

if TYPE_CHECKING:
    import os

_FAST = 1


class RawFile:
    """A new file; each call adds a whole chunk. Raises as ChunkFile."""

    def __init__(self, path: str | os.PathLike[str], facts: dict[str, Any]) -> None:
        self._file = ChunkFile(path)
        self.meta(facts)

    def meta(self, facts: dict[str, Any]) -> None:
        """Facts of the recording; with "device", of that device."""
        self._add(layout.META, json.dumps(facts).encode())

    def seen(self, rows: dict[str, Any]) -> None:
        """Marks, notes and the like since the last chunk of this kind."""
        self._add(layout.SEEN, json.dumps(rows, separators=(",", ":")).encode())

    def window(self, facts: dict[str, Any], snapshot: bytes) -> None:
        """A snapshot, and what is to be known about it."""
        head = json.dumps(facts).encode()
        self._add(layout.WINDOW, layout.PREFIX.pack(len(head)) + head + snapshot)

    def close(self) -> None:
        """Marks the file as complete."""
        self._add(layout.DONE, json.dumps({"events": 0}).encode())
        self._file.close()

    def _add(self, kind: bytes, payload: bytes) -> None:
        packed = zlib.compress(payload, _FAST)
        self._file.append(layout.chunk(kind, packed, layout.Encoding.ZLIB, len(payload)))
