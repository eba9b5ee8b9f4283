"""The open files of this process: where they stand, as forked children share that too, and what is not yet written."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import io
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection


_STDERR = 2


def open_numbers() -> list[int]:
    """File descriptors of this process."""
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir() if entry.exists()]


def flush_all() -> None:
    """Writes what Python files that the program has left open, and the streams of C, still hold back.

    What cannot be written is let go, as the interpreter does with files that it finds open at its end.
    """
    found = gc.get_objects()
    # Text first: it lies on top of a buffer.
    for kind in (io.TextIOBase, io.BufferedIOBase):
        for file in found:
            # By its true type: what merely stands for a file, e.g. a lazy proxy, would be brought about here.
            if issubclass(type(file), kind):
                with suppress(Exception):
                    file.flush()
    ctypes.CDLL(None).fflush(None)


class _Place(NamedTuple):
    number: int
    inode: int
    offset: int
    size: int | None
    """bytes, of a file that this process alone writes"""


class OpenFiles:
    """The regular files that are open now, but those of the numbers `others`."""

    def __init__(self, others: Collection[int]) -> None:
        self._places: list[_Place] = []
        for number in open_numbers():
            if number not in others:
                self._note(number)

    def _note(self, number: int) -> None:
        status = os.fstat(number)
        if stat.S_ISREG(status.st_mode):
            mode = fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
            size = status.st_size if mode == os.O_WRONLY else None
            self._places.append(_Place(number, status.st_ino, os.lseek(number, 0, os.SEEK_CUR), size))

    @property
    def shared(self) -> bool:
        """Whether children that run side by side would move each other's place in one of them."""
        return any(place.number > _STDERR for place in self._places)

    def put_back(self) -> None:
        """Takes every file back to where it stood, and from those that are only written what was added since.

        Files that are read too, like data bases, or appended to, maybe by others, keep what was added.
        """
        for place in self._places:
            with suppress(OSError):
                status = os.fstat(place.number)
                if status.st_ino != place.inode:
                    continue
                os.lseek(place.number, place.offset, os.SEEK_SET)
                if place.size is not None and status.st_size > place.size:
                    os.ftruncate(place.number, place.size)
