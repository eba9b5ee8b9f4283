"""What each key does, in words with numbers. Right values: allocator-semantics sections 1, 3 and 4."""

from __future__ import annotations

import pytest

from hotbed.settings import AllocatorSettings, TorchVersion, explain
from hotbed.settings.keys import KEYS


@pytest.mark.parametrize(
    ("text", "version", "parts"),
    [
        ("expandable_segments:True", "2.14", ["pages of 2 MiB", "pages of 20 MiB", "9/8"]),
        ("expandable_segments:True,large_segment_size_mb:64", "2.14", ["pages of 64 MiB"]),
        ("max_split_size_mb:128", "2.9", ["128 MiB or more are never split", "less than 20 MiB"]),
        ("max_split_size_mb:128,large_segment_size_mb:64", "2.14", ["less than 64 MiB"]),
        ("max_split_size_mb:128,max_non_split_rounding_mb:200", "2.14", ["less than 200 MiB"]),
        ("max_non_split_rounding_mb:64", "2.14", ["no request", "less than 64 MiB"]),
        ("large_segment_size_mb:64", "2.14", ["between 1 and 10 MiB are 64 MiB instead of 20"]),
        ("garbage_collection_threshold:0.8", "2.14", ["80%", "without a limit nothing"]),
        ("per_process_memory_fraction:0.5", "2.14", ["0.5 of the GPU"]),
        ("per_process_memory_fraction:1", "2.14", ["no memory limit"]),
        ("backend:cudaMallocAsync", "2.13", ["stream-ordered"]),
        ("backend:cudaMallocAsync", "2.14", ["tries once more"]),
        ("roundup_power2_divisions:4", "2.14", ["all sizes 4 steps"]),
        ("roundup_power2_divisions:1", "2.14", ["no rounding"]),
        ("pinned_free_catch_all:True", "2.14", ["host memory only"]),
    ],
)
def test_says_what_a_key_does(text: str, version: str, parts: list[str]) -> None:
    settings = AllocatorSettings.parse(text)
    lines = " | ".join(str(line) for line in explain(settings, TorchVersion.parse(version)))
    assert [part for part in parts if part not in lines] == []


def test_a_list_is_explained_as_the_version_reads_it() -> None:
    """Section 1.4: 585 MiB in [512 MiB, 1 GiB): 4 steps make 640 MiB in 2.9, 2 steps 768 MiB from 2.10."""
    settings = AllocatorSettings.parse("roundup_power2_divisions:[256:1,512:2,>:4]")
    old, new = (explain(settings, TorchVersion(2, minor))[0].meaning for minor in (9, 10))
    assert "from 512 MiB 4 steps (585 MiB takes 640)" in old
    assert "512 to 1024 MiB 2 steps (585 MiB takes 768); from 1024 MiB 4 steps" in new


def test_one_line_for_each_key_that_is_set() -> None:
    settings = AllocatorSettings.parse("expandable_segments:True,roundup_power2_divisions:4,backend:native")
    lines = explain(settings, TorchVersion(2, 14))
    assert [(line.key, line.value) for line in lines] == [
        ("expandable_segments", "True"),
        ("roundup_power2_divisions", "4"),
    ]
    assert all("\n" not in line.meaning for line in lines)


def test_every_key_can_be_explained() -> None:
    samples = {"backend": "cudaMallocAsync", "expandable_segments_reserve_by_class": "[a:0.5]"}
    for name, key in KEYS.items():
        value = samples.get(
            name, "True" if key.kind.name == "FLAG" else "64" if key.kind.name != "FRACTION" else "0.5"
        )
        (line,) = explain(AllocatorSettings.parse(f"{name}:{value}"), TorchVersion(2, 15))
        assert line.meaning
