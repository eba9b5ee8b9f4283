"""Which native functions torch's Python functions call, and with what: their arguments differ from version to version."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def calls_of(torch: Any, name: str, function: Callable[[], Any]) -> list[functools.partial[Any]]:
    """The calls of torch._C.`name` that `function` would make; they are not made."""
    made: list[functools.partial[Any]] = []
    original = getattr(torch._C, name)

    def note(*arguments: Any) -> None:
        made.append(functools.partial(original, *arguments))

    setattr(torch._C, name, note)
    try:
        function()
    finally:
        setattr(torch._C, name, original)
    return made


def at_once(calls: list[functools.partial[Any]]) -> list[Any]:
    """What `calls` of native functions return. No other Python thread runs in between, since no byte code does.

    One that allocates needs the interpreter's lock for its stack, so it waits too.
    """
    return list(map(functools.partial.__call__, calls))
