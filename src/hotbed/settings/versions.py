"""What a torch version accepts and how it means it: limits of values, environment names, translation between versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hotbed.errors import SettingsError
from hotbed.settings.finding import Finding
from hotbed.settings.keys import KEYS, Kind, known_keys
from hotbed.settings.roundup import ONE_IS_PLAIN, is_power_of_two, table, written_out
from hotbed.settings.torch_version import NEWEST, TorchVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.settings.allocator import AllocatorSettings
    from hotbed.settings.roundup import Divisions, Table

CUDA_NAME = "PYTORCH_CUDA_ALLOC_CONF"
GENERIC_NAME = "PYTORCH_ALLOC_CONF"

V2_10 = TorchVersion(2, 10)
V2_11 = TorchVersion(2, 11)
Number = TypeVar("Number", int, float)
_LARGE_SEGMENT_MB = 20
_STOI_MAX = 2**31 - 1


def environment_names(version: TorchVersion) -> tuple[str, ...]:
    """Environment variables that torch `version` reads its settings from; the first one set wins, even if empty.

    Source: allocator-semantics section 7. Releases before 2.10 have no second name: 2.9 even warns that the CUDA
    name is deprecated, and still ignores the other one.
    """
    return (CUDA_NAME, GENERIC_NAME) if version >= V2_10 else (CUDA_NAME,)


def smallest_split_mb(settings: AllocatorSettings, version: TorchVersion) -> int:
    """Smallest value that torch `version` accepts for max_split_size_mb and max_non_split_rounding_mb, in MiB."""
    if version < V2_10:
        return _LARGE_SEGMENT_MB + 1
    return large_segment_mb(settings) if version >= V2_11 else _LARGE_SEGMENT_MB


def large_segment_mb(settings: AllocatorSettings) -> int:
    """Size of a segment for mid-sized requests, and page of expandable large segments, in MiB."""
    return _LARGE_SEGMENT_MB if settings.large_segment_size_mb is None else settings.large_segment_size_mb


def validate(
    settings: AllocatorSettings, version: TorchVersion, *, named: frozenset[str] = frozenset()
) -> list[Finding]:
    """Everything for which torch `version` would refuse `settings`; all of severity "error".

    `named` are keys that the text names with their default value, which the settings therefore do not hold.
    Source: allocator-semantics sections 1.4 and 7, checked against torch 2.9.1, 2.11.0 and 2.14.1 by a test.
    """
    findings = []
    known = known_keys(version)
    for key in sorted({*settings.named(), *named}):
        if key not in known:
            findings.append(_too_new(key, version))
        else:
            findings += [_out_of_range(key, problem) for problem in _problems(key, settings, version)]
    return findings


def _problems(key: str, settings: AllocatorSettings, version: TorchVersion) -> Iterator[str]:
    value = settings.named().get(key)
    if key in ("max_split_size_mb", "max_non_split_rounding_mb"):
        smallest = smallest_split_mb(settings, version)
        if isinstance(value, int) and value < smallest:
            yield f"must be at least {smallest}" + _floor_reason(settings, version)
    elif key == "large_segment_size_mb" and isinstance(value, int) and value <= 10:
        yield "must be greater than 10"
    elif key == "garbage_collection_threshold" and isinstance(value, float | int) and not 0 < value < 1:
        yield "must lie between 0 and 1, both excluded"
    elif key == "per_process_memory_fraction" and isinstance(value, float | int) and value > 1:
        yield "must lie between 0 and 1"
    elif key == "roundup_power2_divisions":
        yield from _division_problems(value, version)
    elif not KEYS[key].modelled and value is not None:
        yield from _raw_problems(key, str(value))
    if isinstance(value, int) and value > _STOI_MAX and version < V2_10:
        yield f"must be at most {_STOI_MAX}"


def _floor_reason(settings: AllocatorSettings, version: TorchVersion) -> str:
    raised = version >= V2_11 and settings.large_segment_size_mb not in (None, _LARGE_SEGMENT_MB)
    return ", the large_segment_size_mb" if raised else ""


def _division_problems(value: object, version: TorchVersion) -> Iterator[str]:
    if isinstance(value, int) and not is_power_of_two(value):
        yield f"must be a power of two; found {value}"
    for key, divisions in value if isinstance(value, tuple) else ():
        if key != ">" and not is_power_of_two(key):
            yield f"has the key {key}, which is not a power of two"
        if divisions == 0 and version < ONE_IS_PLAIN:
            yield f"has {key}:0, which torch accepts only from {ONE_IS_PLAIN.release} on"
        elif divisions and not is_power_of_two(divisions):
            yield f"has {key}:{divisions}, which is not a power of two"


def _raw_problems(key: str, raw: str) -> Iterator[str]:
    kind = KEYS[key].kind
    number = int(raw) if raw.isdecimal() else None
    if kind is Kind.FLAG and raw not in ("True", "False"):
        yield f"must be True or False; found {raw!r}"
    elif kind in (Kind.MIB, Kind.COUNT) and number is None:
        yield f"must be a whole number; found {raw!r}"
    elif kind is Kind.COUNT and number is not None and not (is_power_of_two(number) and number <= 128):
        yield f"must be a power of two up to 128; found {raw}"
    elif key == "pinned_reserve_segment_size_mb" and number == 0:
        yield "must be greater than 0"


def _out_of_range(key: str, problem: str) -> Finding:
    return Finding(severity="error", rule="value-out-of-range", message=f"{key} {problem}", hint=None)


def _too_new(key: str, version: TorchVersion) -> Finding:
    since = KEYS[key].since.release
    hint = f"leave {key} out, or use torch {since} or later"
    if key == "per_process_memory_fraction":
        hint = "call torch.cuda.set_per_process_memory_fraction(FRACTION) before the first allocation instead"
    return Finding(
        severity="error",
        rule="key-too-new",
        message=f"torch {version.release} does not know {key} (new in {since}) and stops at the first CUDA call",
        hint=hint,
        until=since,
    )


def translate(
    settings: AllocatorSettings, version: TorchVersion, *, written_for: TorchVersion = NEWEST
) -> AllocatorSettings:
    """Settings that mean to torch `version` what `settings` mean to torch `written_for`.

    A roundup list with ">" is written out key by key where the two releases fill it differently; keys that only state
    what is the default there are dropped. Raises SettingsError when `version` cannot express the settings.
    """
    candidate = settings.replace(
        roundup_power2_divisions=_same_divisions(settings.roundup_power2_divisions, version, written_for),
        large_segment_size_mb=_unless(settings.large_segment_size_mb, _LARGE_SEGMENT_MB, version < V2_11),
        max_non_split_rounding_mb=_unless(
            settings.max_non_split_rounding_mb, _LARGE_SEGMENT_MB, version < V2_10
        ),
        per_process_memory_fraction=_unless(settings.per_process_memory_fraction, 1.0, version < V2_10),
    )
    problems = validate(candidate, version)
    if problems:
        what = "; ".join(finding.message for finding in problems)
        raise SettingsError(
            f"torch {version.release} cannot express {settings}: {what}", hint=problems[0].hint
        )
    return candidate


def _unless(value: Number | None, default: Number, drop: bool) -> Number | None:
    """`value`, or None if it only states the default of a release that refuses to be told so."""
    return None if drop and value == default else value


def _same_divisions(
    divisions: Divisions | None, version: TorchVersion, written_for: TorchVersion
) -> Divisions | None:
    wanted = _meaning(divisions, written_for)
    if _meaning(divisions, version) == wanted:
        return divisions
    divisions = written_out(wanted)
    if _meaning(divisions, version) != wanted:
        raise SettingsError(
            f"torch {version.release} cannot switch rounding off, as 1 division did in {written_for.release}"
        )
    return divisions


def _meaning(divisions: Divisions | None, version: TorchVersion) -> Table:
    """The table, with the two ways to say "plain rounding" made one."""
    entries = table(divisions, version)
    return tuple(0 if entry == 1 else entry for entry in entries) if version >= ONE_IS_PLAIN else entries
