"""The text of allocator settings: from a string to keys with raw values, reporting everything that is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from hotbed.settings.finding import Finding
from hotbed.settings.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

RawPairs = tuple[tuple[str, str], ...]

_TOKEN = re.compile(r"[,:\[\]]|[^,:\[\]]+")
_PUNCTUATION = frozenset(",:[]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key:value` as written; the value is a word or the pairs of a list."""

    key: str
    value: str | RawPairs


class _MalformedError(Exception):
    """The text breaks the grammar here; `hint` as in Finding."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class _Reader:
    """Cursor over the tokens of one settings string."""

    def __init__(self, text: str) -> None:
        # torch drops blanks wherever they stand, and only blanks.
        self._tokens = _TOKEN.findall(text.replace(" ", ""))
        self._next = 0
        self._depth = 0

    def at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def peek(self) -> str:
        return "" if self.at_end() else self._tokens[self._next]

    def take(self) -> str:
        token = self.peek()
        self._next += 1
        self._depth = max(0, self._depth + (token == "[") - (token == "]"))
        return token

    def entry(self) -> Entry:
        """Reads `key:value` and the comma after it."""
        key = self._word("a key", "separate keys with one comma; none stands in front of the first")
        self._colon(key)
        value = self._list(key) if self.peek() == "[" else self._word(f"the value of {key}", None)
        if not self.at_end() and (token := self.take()) != ",":
            raise _MalformedError(
                f"after {key} stands {token!r} instead of a comma", "write key:value,key:value"
            )
        return Entry(key, value)

    def skip_entry(self) -> None:
        """Moves behind the next comma outside brackets."""
        while not self.at_end():
            if self.take() == "," and not self._depth:
                return

    def _word(self, what: str, hint: str | None) -> str:
        token = self.peek()
        if token in _PUNCTUATION or not token:
            found = repr(token) if token else "the end"
            raise _MalformedError(f"{what} is missing: found {found}", hint)
        return self.take()

    def _colon(self, key: str) -> None:
        if self.peek() != ":":
            name, _, value = key.partition("=")
            hint = f"write {name}:{value}" if value else f"write {key}:VALUE"
            raise _MalformedError(f"{key} has no value", hint)
        self.take()

    def _list(self, key: str) -> RawPairs:
        self.take()
        pairs = []
        while self.peek() != "]":
            name = self._word(f"the end of the list of {key}", f"close it: {key}:[256:1,512:2]")
            if self.at_end():
                raise _MalformedError(f"the list of {key} is not closed", f"close it: {key}:[256:1,512:2]")
            self._colon(name)
            pairs.append((name, self._word(f"the value of {name} in {key}", None)))
            if self.peek() == ",":
                self.take()
            elif self.peek() != "]":
                raise _MalformedError(f"the list of {key} is not closed", f"close it: {key}:[256:1,512:2]")
        self.take()
        return tuple(pairs)


def read_entries(text: str) -> tuple[list[Entry], list[Finding]]:
    """The entries of a settings string in order, and a finding for everything that is not one.

    Grammar as torch reads it (allocator-semantics section 7): comma-separated `key:value`, blanks ignored, a comma
    at the end allowed, none at the front. Keys that no torch knows are reported here and left out.
    """
    reader = _Reader(text)
    entries: list[Entry] = []
    findings: list[Finding] = []
    while not reader.at_end():
        try:
            entry = reader.entry()
        except _MalformedError as error:
            findings.append(Finding(severity="error", rule="syntax", message=error.message, hint=error.hint))
            reader.skip_entry()
            continue
        if entry.key in KEYS:
            entries.append(entry)
        else:
            findings.append(_unknown(entry.key))
    return entries, findings


def _unknown(key: str) -> Finding:
    return Finding(
        severity="error",
        rule="unknown-key",
        message=f"no release of torch knows the key {key!r}",
        hint=did_you_mean(key.lower(), KEYS) or "keys: " + ", ".join(KEYS),
    )


def did_you_mean(word: str, choices: Iterable[str]) -> str | None:
    """The sentence that names the closest of `choices`, or None if none is close."""
    matches = get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"did you mean {matches[0]}?" if matches else None
