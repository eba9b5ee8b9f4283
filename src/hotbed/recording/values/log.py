"""Where the program reads device values, and what it was told."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .torch_there import torch

if TYPE_CHECKING:
    from types import FrameType

    from .phantom import Phantom

_OURS, _STANDARD = (f"{Path(file).parent}{os.sep}" for file in (__file__, os.__file__))


class _Place(NamedTuple):
    where: str
    operation: str
    answer: str | None


class _Head(ctypes.Structure):
    """As ReadHead of hotbed.phantom.control, which may be absent by that name here."""

    _fields_ = (
        ("thread", ctypes.c_int32),
        ("certain", ctypes.c_int32),
        ("size", ctypes.c_uint64),
        ("stored", ctypes.c_uint64),
    )


class ReadLog:
    """The Python side of the phantom's log: for each read the line, the operation and how it was answered."""

    def __init__(self, control: Phantom) -> None:
        self._control = control
        self._places: dict[tuple[int, int], _Place] = {}
        self._seen: dict[int, int] = {}

    def note(self, operation: str, answer: str | None) -> None:
        """Ascribes the reads that this thread has made since the last call; `answer` is None if they were known."""
        thread, count = self._control.reads_so_far()
        seen = self._seen.get(thread, 0)
        if thread < 0 or count == seen:
            return
        self._seen[thread] = count
        place = _Place(where(), operation, answer)
        for index in range(seen, count):
            self._places[thread, index] = place

    def pending(self) -> bool:
        """Whether this thread has read since the last note."""
        thread, count = self._control.reads_so_far()
        return thread >= 0 and count != self._seen.get(thread, 0)

    def rows(self) -> list[dict[str, Any]]:
        """Reads grouped by place and answer, in the order of their first occurrence."""
        counts: Counter[tuple[str, str, bool, str | None]] = Counter()
        indices: Counter[int] = Counter()
        for head in _heads(self._control.read_log()):
            index = indices[head.thread]
            indices[head.thread] += 1
            place = self._places.get(
                (head.thread, index), _Place("outside of torch", "copy to host", "zeros")
            )
            known = place.answer is None or bool(head.certain)
            counts[place.where, place.operation, known, None if known else place.answer] += 1
        return [
            {"where": at, "operation": operation, "count": count, "known": known, "answer": answer}
            for (at, operation, known, answer), count in counts.items()
        ]


def _heads(log: bytes) -> list[_Head]:
    heads, position = [], 0
    while position < len(log):
        head = _Head.from_buffer_copy(log, position)
        heads.append(head)
        position += ctypes.sizeof(_Head) + head.stored
    return heads


def where() -> str:
    """ "file:line in function" of the innermost frame that is not torch's, and of the program's own one if that is
    another."""
    frame: FrameType | None = sys._getframe(1)
    inner = None
    torchs = f"{Path(torch.__file__).parent}{os.sep}"
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((torchs, _OURS, "<frozen")):
            inner = inner or frame
            if not _is_library(file):
                break
        frame = frame.f_back
    if inner is None:
        return "a thread of torch"
    text = _named(inner)
    return text if frame is None or frame is inner else f"{text}, from {_named(frame)}"


def _is_library(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD)


def _named(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    for root in ("site-packages" + os.sep, "dist-packages" + os.sep):
        file = file.rpartition(root)[2]
    return f"{file.removeprefix(f'{Path.cwd()}{os.sep}')}:{frame.f_lineno} in {frame.f_code.co_name}"
