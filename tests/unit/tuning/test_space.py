"""Which settings are worth a replay, by torch version and use."""

from __future__ import annotations

import pytest

from hotbed.settings import AllocatorSettings, TorchVersion, validate
from hotbed.tuning.space import Space


def everything(space: Space) -> list[AllocatorSettings]:
    seeds = [*space.without_cap(), *space.under_cap()]
    return [*seeds, *(other for settings in seeds for other in space.neighbours(settings))]


@pytest.mark.parametrize("version", ["2.6", "2.9", "2.11", "2.14"])
def test_only_what_the_torch_accepts_is_tried(version: str) -> None:
    torch = TorchVersion.parse(version)
    for settings in everything(Space(torch)):
        assert not [finding for finding in validate(settings, torch) if finding.severity == "error"]


def test_large_segments_are_tried_from_2_11_on() -> None:
    """large_segment_size_mb is new in 2.11 (allocator-semantics 7)."""
    assert not any(
        settings.large_segment_size_mb for settings in everything(Space(TorchVersion.parse("2.10")))
    )
    assert any(settings.large_segment_size_mb for settings in everything(Space(TorchVersion.parse("2.11"))))


def test_expandable_segments_never_meet_a_split_limit() -> None:
    """Together they let reserved memory grow without end (pytorch issue 193400)."""
    for settings in everything(Space(TorchVersion.parse("2.14"))):
        assert not (settings.expandable_segments and settings.max_split_size_mb)


@pytest.mark.parametrize("use", ["ipc", "sleep-mode", "wsl"])
def test_expandable_segments_are_withheld_where_they_break(use: str) -> None:
    space = Space(TorchVersion.parse("2.14"), frozenset({use}))
    assert not any(settings.expandable_segments for settings in everything(space))
