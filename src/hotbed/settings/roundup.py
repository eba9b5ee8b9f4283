"""The table behind roundup_power2_divisions: what a value means to a torch version, and how to write a table down."""

from __future__ import annotations

from typing import Literal

from hotbed.settings.torch_version import NEWEST, TorchVersion

Divisions = int | tuple[tuple[int | Literal[">"], int], ...]
"""A scalar, or pairs of (first MiB of an interval, or ">" for all above; divisions). 0 divisions: no rounding."""

Table = tuple[int, ...]
"""Divisions for the 16 intervals: entry i for requests of [2**i, 2**(i+1)) MiB, entry 0 also for all below,
the last one also for all above."""

INTERVALS = 16
_MIN_BLOCK_BYTES = 512
_MIB_BITS = 20

GREATER_EXCLUDES_LAST = TorchVersion(2, 10)
"""From this release ">" starts after the last key named; before, it overwrote that key too."""

ONE_IS_PLAIN = TorchVersion(2, 4)
"""From this release 1 division means plain 512-byte rounding, and a list may say 0."""


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def interval(mib: int) -> int:
    """Index of the table entry that key `mib` of a list sets."""
    return min(mib.bit_length() - 1, INTERVALS - 1)


def table(divisions: Divisions | None, version: TorchVersion = NEWEST) -> Table:
    """The table that torch `version` fills from `divisions`. Source: allocator-semantics section 1.4."""
    if divisions is None:
        return (0,) * INTERVALS
    if isinstance(divisions, int):
        return (divisions,) * INTERVALS
    entries = [0] * INTERVALS
    last = 0
    first = True
    for key, value in divisions:
        if key == ">":
            start = last + 1 if version >= GREATER_EXCLUDES_LAST else last
            entries[start:] = [value] * (INTERVALS - start)
            continue
        last = interval(key)
        entries[0 if first else last : last + 1] = [value] * (last + 1 if first else 1)
        first = False
    return tuple(entries)


def written_out(entries: Table) -> Divisions | None:
    """The shortest value that means `entries` to every release, 2.0 to 2.3 included where they can express it.

    No ">" is used, since its meaning changed; a trailing run of 0 needs no key.
    """
    if len(set(entries)) == 1:
        return entries[0] or None
    first = next(i for i in range(INTERVALS) if entries[i + 1] != entries[0])
    end = max(i for i in range(INTERVALS) if entries[i]) + 1
    return tuple((1 << i, entries[i]) for i in range(first, max(end, first + 1)))


def rounded_bytes(request_bytes: int, entries: Table) -> int:
    """Block size for a request under `entries`, as torch 2.4 and later compute it (allocator-semantics 1.3)."""
    size = max(request_bytes, _MIN_BLOCK_BYTES)
    divisions = entries[min(max(size.bit_length() - 1 - _MIB_BITS, 0), INTERVALS - 1)]
    if divisions <= 1 or size <= _MIN_BLOCK_BYTES * divisions:
        step = _MIN_BLOCK_BYTES
    elif is_power_of_two(size):
        return size
    else:
        step = (1 << (size.bit_length() - 1)) // divisions
    return -(-size // step) * step
