"""An .hbt file that grows by whole chunks, written from inside a recorded process. Only the standard library."""

from __future__ import annotations

import os

from hotbed.trace import layout


class ChunkFile:
    """A new file at `path` with the header; append() adds to it. In a forked child nothing is written.

    Not safe for several threads at once. Raises FileExistsError where `path` exists, OSError where it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(path, flags, 0o644)
        self._owner = os.getpid()
        self._size = 0
        self.closed = False
        self.append(layout.header())

    def append(self, chunk: bytes) -> None:
        """Adds all of `chunk` or nothing: what did not fit on the disk is taken back. Raises OSError then."""
        if self.closed or os.getpid() != self._owner:
            return
        written = 0
        left = memoryview(chunk)
        try:
            while written < len(chunk):
                written += os.write(self._file, left[written:])
        except BaseException:
            os.ftruncate(self._file, self._size)
            raise
        self._size += written

    def close(self) -> None:
        """Closes it; a second call does nothing."""
        if not self.closed and os.getpid() == self._owner:
            self.closed = True
            os.close(self._file)
