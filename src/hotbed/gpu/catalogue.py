"""The GPUs that hotbed knows, read from catalogue.toml, and how one is found by name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from hotbed.errors import UsageError
from hotbed.gpu.model import FIGURES, KINDS, Gpu, Layout, Source
from hotbed.gpu.tables import read_table

DEFAULT_GPU = "h200"

_FILE = Path(__file__).with_name("catalogue.toml")
_VENDOR_WORDS = re.compile(r"\b(nvidia|geforce|tesla)\b")
_GIGABYTES = re.compile(r"(?<=[0-9])gb?$")


@cache
def catalogue() -> tuple[Gpu, ...]:
    """All known GPUs, in the order of the data file: by generation, then memory."""
    table = read_table(_FILE)
    return tuple(_gpu(row, table["sources"]) for row in table["gpu"])


def find_gpu(name: str) -> Gpu:
    """The GPU called `name`: a slug ("h100-80", "h100-80g"), an alias or the name that CUDA reports, in any case.

    Raises UsageError naming the closest and all known slugs.
    """
    wanted = _key(name)
    for gpu in catalogue():
        if wanted in _keys(gpu):
            return gpu
    raise UsageError(f"no GPU called {name!r} in the catalogue", hint=_suggestion(wanted))


def _gpu(row: dict[str, Any], sources: dict[str, str]) -> Gpu:
    figures: dict[str, Any] = {}
    origins = []
    for figure in FIGURES:
        if figure not in row:
            continue
        entry = row[figure]
        value = entry["value"]
        figures[figure] = tuple(value) if isinstance(value, list) else value
        assert entry["kind"] in KINDS, (row["slug"], figure)
        origins.append((figure, Source(entry["kind"], sources[entry["source"]])))
    return Gpu(
        slug=row["slug"],
        name=row["name"],
        layouts=_layouts(row, sources, origins),
        aliases=tuple(row.get("aliases", ())),
        sources=tuple(origins),
        **figures,
    )


def _layouts(
    row: dict[str, Any], sources: dict[str, str], origins: list[tuple[str, Source]]
) -> tuple[Layout, ...]:
    if "layouts" not in row:
        return ()
    entry = row["layouts"]
    origins.append(("layouts", Source(entry["kind"], sources[entry["source"]])))
    return tuple(Layout(tuple(sms_per_gpc)) for sms_per_gpc in entry["value"])


def _key(name: str) -> str:
    """What two spellings of one GPU have in common: "NVIDIA H100-80G" and "h100 80gb" give "h10080"."""
    bare = _VENDOR_WORDS.sub("", name.lower()).strip()
    return re.sub(r"[^a-z0-9]", "", _GIGABYTES.sub("", bare))


def _keys(gpu: Gpu) -> set[str]:
    return {_key(name) for name in (gpu.slug, gpu.name, *gpu.aliases)}


def _suggestion(wanted: str) -> str:
    by_key = {key: gpu.slug for gpu in catalogue() for key in _keys(gpu)}
    alike = [slug for key, slug in by_key.items() if wanted and key.startswith(wanted)]
    alike = alike or [by_key[key] for key in get_close_matches(wanted, by_key, n=3)]
    known = "known: " + ", ".join(gpu.slug for gpu in catalogue())
    return f"did you mean {' or '.join(sorted(set(alike)))}? {known}" if alike else known
