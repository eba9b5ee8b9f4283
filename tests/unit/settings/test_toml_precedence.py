"""Command line before environment before file (architecture, hotbed.toml)."""

from __future__ import annotations

import pytest

from hotbed.errors import SettingsError
from hotbed.settings import TorchVersion
from hotbed.settings.toml import Chosen, HotbedToml, MemorySection, choose, settings_in_force

CUDA, GENERIC = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
FILE = HotbedToml(
    memory=MemorySection(settings="max_split_size_mb:64"),
    memory_by_gpu=(("NVIDIA T4", MemorySection(backend="cudaMallocAsync")),),
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"command_line": 1, "environment": 2, "file": 3}, Chosen(1, "command line")),
        ({"environment": 2, "file": 3}, Chosen(2, "environment")),
        ({"file": 3}, Chosen(3, "file")),
        ({}, Chosen(0, "default")),
    ],
)
def test_the_first_source_wins(given: dict[str, int], expected: Chosen[int]) -> None:
    assert choose(0, **given) == expected


@pytest.mark.parametrize(
    ("option", "environ", "version", "gpu", "expected", "origin"),
    [
        ("expandable_segments:True", {CUDA: "max_split_size_mb:99"}, "2.14", None, "expandable_segments:True", "command line"),
        (None, {CUDA: "max_split_size_mb:99"}, "2.14", None, "max_split_size_mb:99", "environment"),
        (None, {CUDA: ""}, "2.14", None, "", "environment"),
        (None, {GENERIC: "max_split_size_mb:99"}, "2.10", None, "max_split_size_mb:99", "environment"),
        (None, {GENERIC: "max_split_size_mb:99"}, "2.9", None, "max_split_size_mb:64", "file"),
        (None, {}, "2.14", "Tesla T4", "max_split_size_mb:64", "file"),
        (None, {}, "2.14", "NVIDIA T4", "backend:cudaMallocAsync", "file"),
    ],
)  # fmt: skip
def test_settings_in_force(
    option: str | None, environ: dict[str, str], version: str, gpu: str | None, expected: str, origin: str
) -> None:
    chosen = settings_in_force(option, environ, FILE, TorchVersion.parse(version), gpu)
    assert (chosen.value.to_string(), chosen.origin) == (expected, origin)


def test_without_any_source_torch_decides() -> None:
    for file in (None, HotbedToml()):
        chosen = settings_in_force(None, {}, file, TorchVersion(2, 14))
        assert (chosen.value.to_string(), chosen.origin) == ("", "default")


def test_a_bad_variable_is_not_passed_over() -> None:
    with pytest.raises(SettingsError, match="expandable_segments must be True or False"):
        settings_in_force(None, {CUDA: "expandable_segments:yes"}, FILE, TorchVersion(2, 14))
