"""What each torch accepts, under which name, and translation. Right values: allocator-semantics section 7."""

from __future__ import annotations

import pytest

from hotbed.errors import SettingsError
from hotbed.settings import (
    AllocatorSettings,
    TorchVersion,
    environment_names,
    known_keys,
    translate,
    validate,
)
from hotbed.settings.roundup import table

SINCE = {
    "expandable_segments": "2.1",
    "release_lock_on_cudamalloc": "2.2",
    "pinned_num_register_threads": "2.2",
    "max_non_split_rounding_mb": "2.6",
    "pinned_use_background_threads": "2.6",
    "graph_capture_record_stream_reuse": "2.9",
    "per_process_memory_fraction": "2.10",
    "pinned_reserve_segment_size_mb": "2.10",
    "large_segment_size_mb": "2.11",
    "throw_on_cudamalloc_oom": "2.12",
    "pinned_free_catch_all": "2.12",
    "pinned_max_cached_size_mb": "2.13",
    "expandable_segments_reserve": "2.15",
}


@pytest.mark.parametrize(("key", "since"), SINCE.items())
def test_a_key_is_known_from_its_release_on(key: str, since: str) -> None:
    """Section 7, column "since"."""
    first = TorchVersion.parse(since)
    assert key in known_keys(first)
    assert key not in known_keys(TorchVersion(first.major, first.minor - 1, 9))


def test_the_oldest_keys_are_always_known() -> None:
    """Section 7: four keys are as old as 2.0."""
    oldest = {"backend", "max_split_size_mb", "garbage_collection_threshold", "roundup_power2_divisions"}
    assert known_keys(TorchVersion(2, 0)) == oldest


def test_the_generic_name_is_read_from_2_10_after_the_cuda_name() -> None:
    """Section 7, environment."""
    assert environment_names(TorchVersion(2, 9, 1)) == ("PYTORCH_CUDA_ALLOC_CONF",)
    assert environment_names(TorchVersion(2, 10)) == ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


@pytest.mark.parametrize(
    ("text", "version", "refused"),
    [
        ("max_split_size_mb:20", "2.9", "must be at least 21"),
        ("max_split_size_mb:21", "2.9", None),
        ("max_split_size_mb:20", "2.10", None),
        ("max_split_size_mb:19", "2.10", "must be at least 20"),
        (
            "max_split_size_mb:32,large_segment_size_mb:64",
            "2.11",
            "must be at least 64, the large_segment_size_mb",
        ),
        ("max_split_size_mb:12,large_segment_size_mb:12", "2.14", None),
        ("max_non_split_rounding_mb:20", "2.6", "must be at least 21"),
        ("max_non_split_rounding_mb:32,large_segment_size_mb:64", "2.14", "must be at least 64"),
        ("max_split_size_mb:99999999999", "2.9", "must be at most 2147483647"),
        ("max_split_size_mb:99999999999", "2.10", None),
        ("large_segment_size_mb:10", "2.11", "must be greater than 10"),
        ("large_segment_size_mb:11", "2.11", None),
        ("large_segment_size_mb:64", "2.10", "does not know large_segment_size_mb (new in 2.11)"),
        ("garbage_collection_threshold:0", "2.14", "between 0 and 1, both excluded"),
        ("garbage_collection_threshold:1.0", "2.9", "between 0 and 1, both excluded"),
        ("garbage_collection_threshold:0.999", "2.9", None),
        ("per_process_memory_fraction:1.1", "2.14", "between 0 and 1"),
        ("per_process_memory_fraction:1", "2.14", None),
        ("roundup_power2_divisions:0", "2.14", "must be a power of two; found 0"),
        ("roundup_power2_divisions:3", "2.9", "must be a power of two; found 3"),
        ("roundup_power2_divisions:[256:0]", "2.4", None),
        ("roundup_power2_divisions:[256:0]", "2.3", "accepts only from 2.4"),
        ("roundup_power2_divisions:[300:2]", "2.14", "the key 300, which is not a power of two"),
        ("roundup_power2_divisions:[256:3]", "2.14", "256:3, which is not a power of two"),
        ("pinned_num_register_threads:256", "2.14", "power of two up to 128"),
        ("pinned_reserve_segment_size_mb:0", "2.14", "greater than 0"),
        ("release_lock_on_cudamalloc:yes", "2.14", "True or False"),
        ("pinned_max_cached_size_mb:big", "2.14", "must be a whole number"),
    ],
)
def test_limits_are_those_of_the_version(text: str, version: str, refused: str | None) -> None:
    """Sections 1.4 and 7, column "notes and changes"."""
    findings = validate(AllocatorSettings.parse(text), TorchVersion.parse(version))
    if refused is None:
        assert findings == []
    else:
        assert len(findings) == 1
        assert findings[0].severity == "error"
        assert refused in findings[0].message


def test_a_too_new_limit_points_to_the_call_that_sets_it() -> None:
    """Mission A6 and issue: before 2.10 the cap is in no string."""
    (finding,) = validate(AllocatorSettings.parse("per_process_memory_fraction:0.5"), TorchVersion(2, 9))
    assert finding.until == "2.10"
    assert finding.hint is not None
    assert "set_per_process_memory_fraction" in finding.hint


def test_translation_writes_a_greater_list_out_for_2_9() -> None:
    """phantom-replay section 0: the list whose ">" also overwrote the last key before 2.10."""
    settings = AllocatorSettings.parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
    old = translate(settings, TorchVersion(2, 9))
    expected = "roundup_power2_divisions:[256:0,512:2,1024:4,2048:8,4096:8,8192:8,16384:8,32768:8]"
    assert old.to_string() == expected
    assert translate(settings, TorchVersion(2, 10)) == settings
    assert table(old.roundup_power2_divisions, TorchVersion(2, 9))[10:12] == (4, 8)


def test_translation_can_start_from_an_old_release() -> None:
    """Section 1.4: what 2.9 did with [256:4,512:2,>:8] is [256:4,512:8,...] to 2.14."""
    settings = AllocatorSettings.parse("roundup_power2_divisions:[256:4,512:2,>:8]")
    new = translate(settings, TorchVersion(2, 14), written_for=TorchVersion(2, 9))
    assert table(new.roundup_power2_divisions, TorchVersion(2, 14)) == (4,) * 9 + (8,) * 7


@pytest.mark.parametrize(
    ("text", "version", "expected"),
    [
        ("large_segment_size_mb:20,max_split_size_mb:64", "2.9", "max_split_size_mb:64"),
        ("max_non_split_rounding_mb:20,max_split_size_mb:64", "2.5", "max_split_size_mb:64"),
        ("per_process_memory_fraction:1.0", "2.9", ""),
        ("roundup_power2_divisions:1", "2.3", ""),
        ("roundup_power2_divisions:[256:4,512:4]", "2.3", "roundup_power2_divisions:[256:4,512:4]"),
    ],
)
def test_translation_drops_what_is_the_default_there(text: str, version: str, expected: str) -> None:
    translated = translate(AllocatorSettings.parse(text), TorchVersion.parse(version))
    assert translated.to_string() == expected


@pytest.mark.parametrize(
    ("text", "version", "what"),
    [
        ("large_segment_size_mb:64", "2.9", "large_segment_size_mb"),
        ("per_process_memory_fraction:0.5", "2.9", "per_process_memory_fraction"),
        ("max_split_size_mb:20", "2.9", "must be at least 21"),
        ("roundup_power2_divisions:[256:1,512:2]", "2.3", "accepts only from 2.4"),
    ],
)
def test_translation_refuses_what_the_version_cannot_express(text: str, version: str, what: str) -> None:
    with pytest.raises(SettingsError, match="cannot express") as caught:
        translate(AllocatorSettings.parse(text), TorchVersion.parse(version))
    assert what in caught.value.message


def test_switched_off_rounding_of_2_3_has_no_later_form() -> None:
    """Section 1.3: until 2.3 a division of 1 meant no rounding at all."""
    settings = AllocatorSettings.parse("roundup_power2_divisions:1")
    with pytest.raises(SettingsError):
        translate(settings, TorchVersion(2, 14), written_for=TorchVersion(2, 3))
