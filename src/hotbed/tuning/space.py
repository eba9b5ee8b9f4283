"""The search space: which settings are worth a replay, for a given torch version and use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotbed.settings import AllocatorSettings, TorchVersion, known_keys, validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FINE = ((64, 1), (128, 4), (256, 4), (512, 8), (1024, 8), (">", 16))
_COARSE = ((256, 1), (512, 2), (1024, 4), (">", 8))
_EXPANDABLE_BREAKS = frozenset({"ipc", "mempool", "sleep-mode", "nixl", "wsl", "windows", "pluggable"})
"""uses with which expandable segments fail or crawl. Source: memory-anchors 4, rows 11-13"""


@dataclass(frozen=True)
class Candidate:
    """Settings and a cap on the process's memory (None: no cap)."""

    settings: AllocatorSettings
    cap_bytes: int | None = None


@dataclass(frozen=True)
class Space:
    """Settings that `version` knows and that `uses` (words of `hotbed settings check --uses`) allow."""

    version: TorchVersion
    uses: frozenset[str] = frozenset()

    def without_cap(self) -> list[AllocatorSettings]:
        """A grid that covers every key alone and the pairs that help each other."""
        grid: list[dict[str, Any]] = []
        for expandable in (False, True):
            base = {"expandable_segments": expandable}
            grid += [
                {**base, "roundup_power2_divisions": value} for value in (None, 2, 4, 8, 16, _COARSE, _FINE)
            ]
            grid += [{**base, "large_segment_size_mb": value} for value in (12, 32, 64, 128, 256)]
        for split in (32, 64, 128, 256, 512, 1024):
            grid += [
                {"max_split_size_mb": split},
                {"max_split_size_mb": split, "roundup_power2_divisions": 8},
                {"max_split_size_mb": split, "max_non_split_rounding_mb": max(64, split)},
            ]
        return list(self._allowed(grid))

    def under_cap(self) -> list[AllocatorSettings]:
        """Settings to lower a cap with, most promising first."""
        grid: list[dict[str, Any]] = [
            {"expandable_segments": True},
            {},
            *({"expandable_segments": True, "large_segment_size_mb": value} for value in (64, 32, 128)),
            *({"max_split_size_mb": value} for value in (128, 256, 512)),
            *({"garbage_collection_threshold": value} for value in (0.8, 0.6)),
            {"max_split_size_mb": 256, "garbage_collection_threshold": 0.8, "roundup_power2_divisions": 8},
            {"roundup_power2_divisions": 2},
            {"expandable_segments": True, "roundup_power2_divisions": 2},
        ]
        return list(self._allowed(grid))

    def neighbours(self, settings: AllocatorSettings) -> list[AllocatorSettings]:
        """`settings` with one key changed."""
        axes: dict[str, tuple[Any, ...]] = {
            "expandable_segments": (False, True),
            "large_segment_size_mb": (None, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256),
            "max_split_size_mb": (None, 32, 64, 128, 256, 512, 1024),
            "max_non_split_rounding_mb": (None, 64, 256),
            "garbage_collection_threshold": (None, 0.5, 0.7, 0.9),
            "roundup_power2_divisions": (None, 2, 4, 8, 16, _FINE),
        }
        changed = [settings.replace(**{key: value}) for key, values in axes.items() for value in values]
        return [other for other in dict.fromkeys(changed) if other != settings and self.allows(other)]

    def _allowed(self, grid: Iterable[dict[str, Any]]) -> Iterator[AllocatorSettings]:
        """Of `grid` what this torch accepts, each once."""
        seen = set()
        for raw in grid:
            settings = AllocatorSettings(**{key: value for key, value in raw.items() if value is not None})
            if settings not in seen and self.allows(settings):
                seen.add(settings)
                yield settings

    def allows(self, settings: AllocatorSettings) -> bool:
        """Whether this torch accepts `settings` and they are safe to recommend.

        Expandable segments with max_split_size_mb let reserved memory grow without end (pytorch issue 193400);
        garbage collection never touches expandable memory, and its other options need it to be on.
        """
        named = set(settings.named())
        if not named <= known_keys(self.version):
            return False
        if any(finding.severity == "error" for finding in validate(settings, self.version)):
            return False
        if settings.expandable_segments and (
            self.uses & _EXPANDABLE_BREAKS or {"max_split_size_mb", "garbage_collection_threshold"} & named
        ):
            return False
        return "max_non_split_rounding_mb" not in named or "max_split_size_mb" in named
