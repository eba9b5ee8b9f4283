"""Where output goes: data to stdout, everything else to stderr, colour only on a terminal."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 110


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # Off a terminal rich would fold tables at 80 columns; a fixed width keeps piped output stable.
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, soft_wrap=False, width=width)


def show(renderable: RenderableType) -> None:
    """Prints a result for people to stdout. Lines that must stay whole to be pasted may pass the right edge."""
    _console(stderr=False).print(renderable, crop=False)


def note(text: str) -> None:
    """Prints a remark to stderr, on a line of its own, without interpreting markup."""
    _console(stderr=True).print(text, markup=False, soft_wrap=True)


def error_console() -> Console:
    """Console on stderr, for progress bars."""
    return _console(stderr=True)


def print_json(value: Any) -> None:
    """Prints one JSON value on one line to stdout; `value` consists of plain containers, numbers and strings."""
    sys.stdout.write(json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n")
