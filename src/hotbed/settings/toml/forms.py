"""The forms that values in hotbed.toml can have: how each is read, described and written in a JSON Schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError
from hotbed.settings.allocator import AllocatorSettings
from hotbed.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_SIZE_PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*[kKmMgGtT]?([iI]?[bB])?\s*$"


class NotThisFormError(Exception):
    """A value has not the form; the text says what is wrong beyond that, "" if there is nothing more to say."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of value: `description` completes "must be ...", `read` checks and converts, or raises
    NotThisFormError; `schema` is the JSON Schema."""

    description: str
    read: Callable[[object], Any]
    schema: dict[str, Any]


def _only(kind: type, value: object) -> Any:
    if type(value) is not kind:
        raise NotThisFormError
    return value


def _size(value: object) -> int:
    if type(value) is int and value > 0:
        return value
    try:
        return parse_size(_only(str, value))
    except HotbedError as error:
        raise NotThisFormError from error


def _duration(value: object) -> float:
    if type(value) in (int, float) and value >= 0:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    match = _DURATION.fullmatch(_only(str, value))
    if match is None:
        raise NotThisFormError
    return float(match[1]) * _SECONDS[match[2]]


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_only(str, item) for item in _only(list, value))


def _settings(value: object) -> str:
    try:
        AllocatorSettings.parse(_only(str, value))
    except HotbedError as error:
        raise NotThisFormError(error.message) from error
    return str(value)


def _environment(value: object) -> tuple[tuple[str, str], ...]:
    table = _only(dict, value)
    for name, setting in table.items():
        if not name.startswith("NCCL_"):
            raise NotThisFormError(f"{name!r} does not start with NCCL_")
        if type(setting) not in (str, int):
            raise NotThisFormError(f"{name} must be text or a number")
    return tuple((name, str(setting)) for name, setting in table.items())


def _threads(value: object) -> int | str:
    if value == "auto" or (type(value) is int and value >= 1):
        return value
    raise NotThisFormError


def choice(*words: str) -> Form:
    """One of some words."""

    def read(value: object) -> str:
        if value not in words:
            raise NotThisFormError
        return str(value)

    return Form(" or ".join(f'"{word}"' for word in words), read, {"enum": list(words)})


def _positive(value: object) -> int:
    if type(value) is not int or value < 1:
        raise NotThisFormError
    return value


TEXT = Form("text", lambda value: _only(str, value), {"type": "string"})
FLAG = Form("true or false", lambda value: _only(bool, value), {"type": "boolean"})
POSITIVE = Form("a whole number of at least 1", _positive, {"type": "integer", "minimum": 1})
TEXTS = Form("a list of texts", _texts, {"type": "array", "items": {"type": "string"}})
TABLE = Form("a table", lambda value: _only(dict, value), {"type": "object"})
SETTINGS = Form("an allocator settings string", _settings, {"type": "string"})
SIZE = Form(
    'a number of bytes or text like "15GiB"',
    _size,
    {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": _SIZE_PATTERN}]},
)
DURATION = Form(
    'a number of seconds or text like "20m"',
    _duration,
    {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(s|m|h)$"},
        ]
    },
)
THREADS = Form('"auto" or a number of threads', _threads, {"anyOf": [{"const": "auto"}, POSITIVE.schema]})
NCCL = Form(
    "a table of NCCL_ variables",
    _environment,
    {
        "type": "object",
        "propertyNames": {"pattern": "^NCCL_"},
        "additionalProperties": {"type": ["string", "integer"]},
    },
)
