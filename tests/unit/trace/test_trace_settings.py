"""The settings of a recording as an env string, from what each torch reports."""

from __future__ import annotations

from typing import Any

import pytest

from hotbed.trace.allocator_settings import settings_string

KEYS = [str(1 << i) for i in range(16)]
# What torch 2.11 reports when nothing is set (tests/data/h200).
DEFAULTS: dict[str, Any] = {
    "PYTORCH_CUDA_ALLOC_CONF": "",
    "max_split_size": -1,
    "garbage_collection_threshold": 0.0,
    "expandable_segments": False,
    "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False,
    "pinned_use_cuda_host_register": False,
    "graph_capture_record_stream_reuse": False,
    "roundup_power2_divisions": dict.fromkeys(KEYS, 0),
}


def table(**changed: int) -> dict[str, int]:
    return dict.fromkeys(KEYS, 0) | {key.removeprefix("m"): value for key, value in changed.items()}


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({}, ""),
        ({"PYTORCH_CUDA_ALLOC_CONF": " max_split_size_mb:64 ", "expandable_segments": True}, "max_split_size_mb:64"),
        ({"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, "expandable_segments:True"),
        ({"expandable_segments": True}, "expandable_segments:True"),
        ({"max_split_size": 128 << 20}, "max_split_size_mb:128"),
        ({"max_split_size": (1 << 64) - 1}, ""),
        ({"max_split_size": (1 << 63) - 1}, ""),
        ({"garbage_collection_threshold": 0.8}, "garbage_collection_threshold:0.8"),
        ({"roundup_power2_divisions": dict.fromkeys(KEYS, 8)}, "roundup_power2_divisions:8"),
        ({"roundup_power2_divisions": table(m256=4, m512=2)}, "roundup_power2_divisions:[1:0,256:4,512:2]"),
        ({"roundup_power2_divisions": {"x": 1, "2": "y"}}, ""),
        ({"pinned_num_register_threads": 8, "release_lock_on_cudamalloc": True},
         "release_lock_on_cudamalloc:True,pinned_num_register_threads:8"),
        ({"max_split_size": "odd", "garbage_collection_threshold": None, "expandable_segments": 1}, ""),
    ],
)  # fmt: skip
def test_settings_as_a_string(reported: dict[str, Any], expected: str) -> None:
    assert settings_string(DEFAULTS | reported) == expected
