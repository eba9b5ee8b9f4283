"""Traces as files of other tools: Perfetto, torch's memory_viz, CSV and Parquet; and hotbed's own .hbt."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from hotbed.trace.model import Trace

KINDS: Final = {
    "hbt": ("hotbed.trace.compaction", "write_compact"),
    "perfetto": ("hotbed.trace.exporting.perfetto", "write_perfetto"),
    "memory-viz": ("hotbed.trace.exporting.memory_viz", "write_memory_viz"),
    "csv": ("hotbed.trace.exporting.rows", "write_csv"),
    "parquet": ("hotbed.trace.exporting.rows", "write_parquet"),
}
"""kind → (module, function that writes it)"""
_SUFFIXES: Final = {
    ".json": "perfetto",
    ".pickle": "memory-viz",
    ".pkl": "memory-viz",
    ".csv": "csv",
    ".parquet": "parquet",
}


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind that the name of a file asks for; "hbt" where it names no other."""
    return _SUFFIXES.get(PurePath(path).suffix.lower(), "hbt")


def write_as(kind: str, path: str | os.PathLike[str], traces: Sequence[Trace]) -> None:
    """Writes `traces`, the devices of one recording, to `path`, whole or not at all. `kind` is one of KINDS.

    Raises UsageError where a package that the kind needs is not installed, and as files.replacing.
    """
    module, name = KINDS[kind]
    getattr(import_module(module), name)(path, traces)
