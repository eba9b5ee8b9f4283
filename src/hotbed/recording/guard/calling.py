"""Where a call comes from: the program's own line, and the library that made the call for it."""

from __future__ import annotations

import sys
from os.path import dirname, join
from typing import TYPE_CHECKING, Any, NamedTuple

from hotbed.recording.reach import in_program
from hotbed.trace.model import Frame

if TYPE_CHECKING:
    from types import FrameType


class Caller(NamedTuple):
    """`where` is the innermost line of the program, `via` that of the library between it and the call, if any."""

    where: Frame | None
    via: Frame | None
    by_torch: bool = False
    """torch itself makes the call, as the capture of a CUDA graph does"""
    by_hotbed: bool = False


_OURS = dirname(dirname(dirname(__file__)))  # noqa: PTH120 - as code objects name it
_WATCHER = join(dirname(__file__), "cache_calls.py")  # noqa: PTH118, PTH120
_WRAPPERS = {"empty_cache"}


def caller(torch: Any, depth: int) -> Caller:
    """Of the frame `depth` above this function's caller. A few microseconds."""
    frame: FrameType | None = sys._getframe(depth + 1)
    folder = dirname(torch.__file__)  # noqa: PTH120 - as code objects name it
    while frame is not None and _passes_on(frame, folder):
        frame = frame.f_back
    first = frame
    while frame is not None and not in_program(frame.f_code):
        frame = frame.f_back
    return Caller(
        where=None if frame is None else _line(frame),
        via=None if first is None or first is frame else _line(first),
        by_torch=first is not None and first.f_code.co_filename.startswith(folder),
        by_hotbed=first is not None and first.f_code.co_filename.startswith(_OURS),
    )


def _passes_on(frame: FrameType, folder: str) -> bool:
    """Whether it is torch's Python function around the call in C, or another watcher's wrapper."""
    if frame.f_code.co_filename == _WATCHER:
        return True
    return frame.f_code.co_name in _WRAPPERS and frame.f_code.co_filename.startswith(folder)


def _line(frame: FrameType) -> Frame:
    return Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
