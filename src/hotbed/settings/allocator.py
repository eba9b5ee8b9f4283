"""AllocatorSettings: the value behind PYTORCH_CUDA_ALLOC_CONF, read from and written to torch's own text form."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from hotbed.errors import SettingsError
from hotbed.settings.finding import Finding
from hotbed.settings.grammar import read_entries
from hotbed.settings.keys import KEYS, Key, Kind
from hotbed.settings.values import BACKENDS, BadValueError, Value, read_value, write_value

if TYPE_CHECKING:
    from hotbed.settings.roundup import Divisions

_WORD = r"[^,:\[\] ]+"
_OTHER = {name: key for name, key in KEYS.items() if not key.modelled}
_RAW = re.compile(rf"{_WORD}|\[(?:{_WORD}:{_WORD}(?:,{_WORD}:{_WORD})*)?\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorSettings:
    """Settings of torch's CUDA caching allocator. None: not named, so torch's default holds.

    `roundup_power2_divisions` is a scalar or pairs of (first MiB of an interval or ">", divisions), with the meaning
    that torch 2.10 and later give it. `other` holds keys that do not change device memory, with their raw values,
    sorted. Values are checked for form only; limits depend on the torch version: see hotbed.settings.validate.
    """

    backend: Literal["native", "cudaMallocAsync"] = "native"
    expandable_segments: bool = False
    max_split_size_mb: int | None = None
    max_non_split_rounding_mb: int | None = None
    large_segment_size_mb: int | None = None
    garbage_collection_threshold: float | None = None
    roundup_power2_divisions: Divisions | None = None
    per_process_memory_fraction: float | None = None
    other: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "other", tuple(sorted(self.other)))
        fields = self._fields()
        wrong = [key for key, value in fields.items() if not _has_form(KEYS[key], value)]
        wrong += [key for key, raw in self.other if not _has_form(_OTHER.get(key), raw)]
        for key in wrong:
            hint = f"{key} is {KEYS[key].kind.value}" if key in KEYS else "keys: " + ", ".join(KEYS)
            raise SettingsError(f"{key}={self.named()[key]!r} cannot be an allocator setting", hint=hint)

    @classmethod
    def parse(cls, text: str) -> AllocatorSettings:
        """Settings that `text` gives to torch. Raises SettingsError naming everything that no torch would accept.

        A repeated key counts with its last value; "20.5" for a whole number reads as 20, as torch reads it.
        """
        reading = read_settings(text)
        errors = [finding for finding in reading.findings if finding.severity == "error"]
        if errors:
            what = "; ".join(finding.message for finding in errors)
            hint = next((finding.hint for finding in errors if finding.hint), None)
            raise SettingsError(f"allocator settings {text!r}: {what}", hint=hint)
        return reading.settings

    def to_string(self) -> str:
        """The canonical text: keys that differ from torch's default, in a fixed order; "" if none does."""
        return ",".join(f"{key}:{write_value(value)}" for key, value in self.named().items())

    def named(self) -> dict[str, Value]:
        """Keys that differ from torch's default, with their values; those of `other` with their raw text."""
        return {**self._fields(), **dict(self.other)}

    def replace(self, **changes: Any) -> AllocatorSettings:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def _fields(self) -> dict[str, Value]:
        fields = {name: getattr(self, name) for name, key in KEYS.items() if key.modelled}
        return {k: v for k, v in fields.items() if v is not None and v is not False and v != "native"}

    def __str__(self) -> str:
        return self.to_string()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says: the settings that could be read, the keys it names, and remarks on the rest."""

    settings: AllocatorSettings
    named: frozenset[str]
    findings: tuple[Finding, ...]


def read_settings(text: str) -> Reading:
    """Reads as much of `text` as can be read; never raises."""
    entries, findings = read_entries(text)
    values: dict[str, Value] = {}
    for entry in entries:
        if entry.key in values:
            findings.append(_repeated(entry.key))
        try:
            values[entry.key], remark = read_value(entry)
        except BadValueError as problem:
            remark = problem.finding
        if remark is not None:
            findings.append(remark)
    fields: dict[str, Any] = {name: value for name, value in values.items() if KEYS[name].modelled}
    other = tuple((name, str(value)) for name, value in values.items() if not KEYS[name].modelled)
    return Reading(AllocatorSettings(**fields, other=other), frozenset(values), tuple(findings))


def _has_form(key: Key | None, value: object) -> bool:
    """Whether `value` can be written down for `key` and read back."""
    if key is None:
        return False
    if not key.modelled:
        return isinstance(value, str) and _RAW.fullmatch(value) is not None
    if key.kind is Kind.MIB:
        return _is_whole(value)
    if key.kind is Kind.FRACTION:
        return isinstance(value, int | float) and math.isfinite(value) and value >= 0
    if key.kind is Kind.DIVISIONS:
        return _is_whole(value) or (isinstance(value, tuple) and bool(value) and all(map(_is_pair, value)))
    return value is True or value in BACKENDS


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pair(pair: object) -> bool:
    """Whether `pair` is (MiB or ">", divisions)."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        return False
    key, value = pair
    return (key == ">" or _is_whole(key)) and _is_whole(value)


def _repeated(key: str) -> Finding:
    return Finding(
        severity="warning",
        rule="repeated-key",
        message=f"{key} is named more than once; torch checks every value and the last one counts",
        hint=f"keep one {key}",
    )
