"""Says in plain words, with numbers, what each key of some settings does to memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.settings.keys import KEYS
from hotbed.settings.roundup import INTERVALS, Divisions, rounded_bytes, table
from hotbed.settings.torch_version import TorchVersion
from hotbed.settings.values import Value, write_value
from hotbed.settings.versions import V2_11, large_segment_mb
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hotbed.settings.allocator import AllocatorSettings

_ASYNC_RETRIES = TorchVersion(2, 14)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one key does: `key` and `value` as in the settings text, `meaning` one line."""

    key: str
    value: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.key}:{self.value} {self.meaning}"


def explain(settings: AllocatorSettings, version: TorchVersion) -> list[Explanation]:
    """One line for each key that is set. Source: allocator-semantics sections 1, 3.3, 3.4, 4 and 6."""
    return [
        Explanation(key, write_value(value), _meaning(key, value, settings, version))
        for key, value in settings.named().items()
    ]


def _meaning(key: str, value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    if not KEYS[key].modelled:
        return KEYS[key].effect
    return _WORDS[key](value, settings, version)


def _backend(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    retry = ", and trims its pool and tries once more before it gives up" if version >= _ASYNC_RETRIES else ""
    return (
        "every request goes to the driver's stream-ordered pool, unrounded; the keys of the native allocator do "
        f"nothing; the pool keeps what is freed{retry}"
    )


def _expandable(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    page = large_segment_mb(settings)
    return (
        "memory grows in place, one range for each pool and stream, so free neighbours always merge: requests up to "
        f"1 MiB in pages of 2 MiB, larger ones in pages of {page} MiB; each range reserves address space for 9/8 of "
        "the GPU, not memory"
    )


def _split(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    return (
        f"free blocks of {value} MiB or more are never split: smaller requests do not use them, larger ones only "
        f"those less than {_rounding_mb(settings, version)} MiB too big; before it runs out of memory torch gives "
        "such a block back to make room"
    )


def _rounding(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    split = settings.max_split_size_mb
    who = (
        "no request, since max_split_size_mb is not set"
        if split is None
        else f"a request of {split} MiB or more"
    )
    return f"largest excess at which {who} takes an unsplit block: less than {value} MiB, instead of {_default_rounding(settings, version)}"


def _large_segment(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    page = ", and the page of expandable segments for them" if settings.expandable_segments else ""
    return f"segments for requests between 1 and 10 MiB are {value} MiB instead of 20{page}"


def _gc(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    assert isinstance(value, int | float)
    return (
        f"before a new segment is requested, once reserved memory passes {value:.0%} of the memory limit, whole free "
        "segments of the large pool are given back, those unused for longest first; without a limit nothing happens"
    )


def _fraction(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    assert isinstance(value, int | float)
    if value >= 1:
        return "no memory limit"
    return f"torch may reserve {value:.4g} of the GPU's memory in this process; beyond that it frees its cache, then raises"


def _roundup(value: Value, settings: AllocatorSettings, version: TorchVersion) -> str:
    divisions = settings.roundup_power2_divisions
    parts = "; ".join(_interval_words(divisions, version))
    return f"request sizes are rounded up to steps between powers of two: {parts}" if parts else "no rounding"


def _interval_words(divisions: Divisions | None, version: TorchVersion) -> Iterator[str]:
    """For each run of intervals with the same divisions: its bounds, its divisions and one request rounded."""
    entries = table(divisions, version)
    start = 0
    for end in range(1, INTERVALS + 1):
        if end < INTERVALS and entries[end] == entries[start]:
            continue
        if entries[start] > 1:
            example = (1 << start) + max(1, (1 << start) // 7)
            block = rounded_bytes(example * MIB, entries) / MIB
            yield f"{_bounds(start, end)} {entries[start]} steps ({example} MiB takes {block:g})"
        start = end


def _bounds(start: int, end: int) -> str:
    if start == 0:
        return "all sizes" if end == INTERVALS else f"below {1 << end} MiB"
    return f"from {1 << start} MiB" if end == INTERVALS else f"{1 << start} to {1 << end} MiB"


def _default_rounding(settings: AllocatorSettings, version: TorchVersion) -> int:
    return large_segment_mb(settings) if version >= V2_11 else 20


def _rounding_mb(settings: AllocatorSettings, version: TorchVersion) -> int:
    named = settings.max_non_split_rounding_mb
    return _default_rounding(settings, version) if named is None else named


_WORDS: dict[str, Callable[[Value, AllocatorSettings, TorchVersion], str]] = {
    "backend": _backend,
    "expandable_segments": _expandable,
    "max_split_size_mb": _split,
    "max_non_split_rounding_mb": _rounding,
    "large_segment_size_mb": _large_segment,
    "garbage_collection_threshold": _gc,
    "roundup_power2_divisions": _roundup,
    "per_process_memory_fraction": _fraction,
}
