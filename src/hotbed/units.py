"""Bytes in words and back. Binary units only: 1 GiB = 1024 MiB, as CUDA and torch count."""

from __future__ import annotations

import re

from hotbed.errors import UsageError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

_FACTOR = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": 1 << 40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes meant by `text`: "15GiB", "1.5 g", "512M", "1073741824". Units are binary.

    Raises UsageError for anything else, including negative and zero sizes.
    """
    match = _SIZE.fullmatch(text)
    value = int(float(match[1]) * _FACTOR[match[2].lower()]) if match else 0
    if value <= 0:
        raise UsageError(f"{text!r} is not a size", hint="write it like 15GiB, 512MiB or 1073741824 (bytes)")
    return value


def format_size(size_bytes: float) -> str:
    """`size_bytes` in the largest binary unit that keeps at least one digit before the point: "14.9 GiB"."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def format_mib(size_bytes: float) -> str:
    """`size_bytes` in whole MiB, the unit in which allocators are compared: "15762 MiB"."""
    return f"{size_bytes / MIB:.0f} MiB"
