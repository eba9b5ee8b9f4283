"""Versions of torch: reading, comparing, and which one is installed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hotbed.errors import UsageError

_PATTERN = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(.*)")


@dataclass(frozen=True, slots=True, order=True)
class TorchVersion:
    """A torch release. Compared by its three numbers; what follows them ("+cu130", "a0+git") is only kept."""

    major: int
    minor: int
    patch: int = 0
    suffix: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> TorchVersion:
        """Version meant by `text`: "2.9", "2.14.1+cu130". Raises UsageError for anything else."""
        match = _PATTERN.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"{text!r} is not a torch version", hint="write it like 2.9 or 2.14.1+cu130")
        return cls(int(match[1]), int(match[2]), int(match[3] or 0), match[4])

    @property
    def release(self) -> str:
        """Major and minor number, the unit in which allocator rules change: "2.14"."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return f"{self.release}.{self.patch}{self.suffix}"


OLDEST = TorchVersion(2, 0)
"""Oldest release whose rules are known."""

NEWEST = TorchVersion(2, 15)
"""Newest release whose rules are known; later ones are taken to behave like it."""


def installed_torch() -> TorchVersion | None:
    """Version of the torch that `import torch` would load here, without importing it; None without one."""
    # Loads email, zipfile and more; most users of this module never ask.
    from importlib import metadata

    try:
        return TorchVersion.parse(metadata.version("torch"))
    except (metadata.PackageNotFoundError, UsageError):
        return None
