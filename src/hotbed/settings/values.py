"""Values of settings keys: read from their text the way torch reads them, and written back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hotbed.settings.finding import Finding
from hotbed.settings.grammar import did_you_mean
from hotbed.settings.keys import KEYS, Kind

if TYPE_CHECKING:
    from hotbed.settings.grammar import Entry

BACKENDS = ("native", "cudaMallocAsync")
_WHOLE = re.compile(r"\s*[+-]?\d+")
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

Value = str | bool | int | float | tuple[tuple[int | str, int], ...] | None


class BadValueError(Exception):
    """A value has not the form that its key needs."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def read_value(entry: Entry) -> tuple[Value, Finding | None]:
    """The value of `entry`, and a remark where torch reads something else than what stands there.

    Keys without a field in AllocatorSettings keep their raw text. Raises BadValueError.
    """
    key = KEYS[entry.key]
    if not key.modelled:
        return _raw(entry), None
    if key.kind is Kind.DIVISIONS:
        return _divisions(entry)
    if not isinstance(entry.value, str):
        raise _bad(entry, "a list")
    if key.kind is Kind.BACKEND:
        return _choice(entry, entry.value, BACKENDS), None
    if key.kind is Kind.FLAG:
        return _choice(entry, entry.value, ("True", "False")) == "True", None
    if key.kind is Kind.FRACTION:
        return _fraction(entry, entry.value)
    number, remark = _whole(entry, entry.value)
    if number >= 0:
        return number, remark
    if entry.key == "max_split_size_mb":
        return None, _remark(
            entry, f"torch takes {entry.value} as a huge number: no limit", "leave the key out"
        )
    raise _bad(entry, repr(entry.value))


def write_value(value: Value) -> str:
    """Text of a value: True, 128, 0.8, [256:1,>:4]."""
    if isinstance(value, tuple):
        return "[" + ",".join(f"{key}:{divisions}" for key, divisions in value) + "]"
    return repr(value) if isinstance(value, float) else str(value)


def _raw(entry: Entry) -> str:
    if isinstance(entry.value, str):
        return entry.value
    return "[" + ",".join(f"{name}:{value}" for name, value in entry.value) + "]"


def _choice(entry: Entry, word: str, choices: tuple[str, ...]) -> str:
    if word in choices:
        return word
    same = [choice for choice in choices if choice.lower() == word.lower()]
    hint = f"write {entry.key}:{same[0]}, capitals matter" if same else did_you_mean(word, choices)
    raise _bad(entry, repr(word), hint)


def _whole(entry: Entry, text: str) -> tuple[int, Finding | None]:
    match = _WHOLE.match(text)
    if match is None:
        raise _bad(entry, repr(text))
    return int(match[0]), _tail(entry, text, match[0])


def _fraction(entry: Entry, text: str) -> tuple[float, Finding | None]:
    match = _NUMBER.match(text)
    if match is None or float(match[0]) < 0 or float(match[0]) == float("inf"):
        raise _bad(entry, repr(text))
    return float(match[0]), _tail(entry, text, match[0])


def _divisions(entry: Entry) -> tuple[Value, Finding | None]:
    if isinstance(entry.value, str):
        number, remark = _whole(entry, entry.value)
        if number < 0:
            raise _bad(entry, repr(entry.value))
        return number, remark
    pairs: list[tuple[int | str, int]] = []
    remarks = []
    for name, value in entry.value:
        key, key_remark = (">", None) if name == ">" else _whole(entry, name)
        number, value_remark = _whole(entry, value)
        if number < 0 or (isinstance(key, int) and key < 0):
            raise _bad(entry, f"{name}:{value}")
        pairs.append((key, number))
        remarks += [remark for remark in (key_remark, value_remark) if remark]
    return tuple(pairs) or None, remarks[0] if remarks else None


def _tail(entry: Entry, text: str, read: str) -> Finding | None:
    if text == read:
        return None
    return _remark(
        entry, f"torch reads {text!r} as {read.strip()} and ignores the rest", "write the number alone"
    )


def _remark(entry: Entry, message: str, hint: str) -> Finding:
    return Finding(severity="warning", rule="number-form", message=f"{entry.key}: {message}", hint=hint)


def _bad(entry: Entry, found: str, hint: str | None = None) -> BadValueError:
    wanted = KEYS[entry.key].kind.value
    message = f"{entry.key} must be {wanted}; found {found}"
    return BadValueError(Finding(severity="error", rule="bad-value", message=message, hint=hint))
