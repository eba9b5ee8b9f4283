"""Notices a text in what the program writes to sys.stdout."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def watch_output(text: str, found: Callable[[], None]) -> None:
    """Calls `found` once `text` has been written, also in pieces, at the end of that line or with the next piece.

    What is written goes where it went before.
    """
    stream: Any = sys.stdout
    original = stream.write
    tail = ""

    @functools.wraps(original)
    def write(piece: str) -> Any:
        nonlocal tail
        result = original(piece)
        there = text in tail
        tail += piece
        if there or (text in tail and piece.endswith("\n")):
            stream.write = original
            found()
        if text not in tail:
            tail = tail[-len(text) :]
        return result

    stream.write = write
