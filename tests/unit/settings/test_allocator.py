"""AllocatorSettings: torch's text form in and out. Sections are those of allocator-semantics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.errors import SettingsError
from hotbed.settings import AllocatorSettings

POWERS = st.integers(0, 16).map(lambda exponent: 1 << exponent)
PAIRS = st.tuples(st.one_of(POWERS, st.just(">")), st.one_of(st.just(0), POWERS))
FRACTIONS = st.floats(0, 1, allow_nan=False)
SETTINGS = st.builds(
    AllocatorSettings,
    backend=st.sampled_from(["native", "cudaMallocAsync"]),
    expandable_segments=st.booleans(),
    max_split_size_mb=st.none() | st.integers(0, 2**40),
    max_non_split_rounding_mb=st.none() | st.integers(0, 2**40),
    large_segment_size_mb=st.none() | st.integers(0, 2**40),
    garbage_collection_threshold=st.none() | FRACTIONS,
    roundup_power2_divisions=st.none() | POWERS | st.lists(PAIRS, min_size=1, max_size=18).map(tuple),
    per_process_memory_fraction=st.none() | FRACTIONS,
    other=st.dictionaries(
        st.sampled_from(
            ["pinned_num_register_threads", "pinned_free_catch_all", "expandable_segments_reserve"]
        ),
        st.sampled_from(["True", "8", "0.5", "40G"]),
    ).map(lambda entries: tuple(entries.items())),
)


@given(SETTINGS)
def test_text_form_loses_nothing(settings: AllocatorSettings) -> None:
    assert AllocatorSettings.parse(settings.to_string()) == settings


def test_defaults_need_no_text() -> None:
    assert AllocatorSettings().to_string() == ""
    assert AllocatorSettings.parse("") == AllocatorSettings()
    assert AllocatorSettings.parse("backend:native,expandable_segments:False").to_string() == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" max_split_size_mb : 128 , ", {"max_split_size_mb": 128}),
        ("max_split_size_mb:6 4", {"max_split_size_mb": 64}),
        (
            "expandable_segments:True,max_split_size_mb:64",
            {"expandable_segments": True, "max_split_size_mb": 64},
        ),
        ("max_split_size_mb:64,max_split_size_mb:128", {"max_split_size_mb": 128}),
        ("garbage_collection_threshold:.8", {"garbage_collection_threshold": 0.8}),
        ("max_split_size_mb:20.5", {"max_split_size_mb": 20}),
        ("garbage_collection_threshold:0.5x", {"garbage_collection_threshold": 0.5}),
        ("max_split_size_mb:-1", {"max_split_size_mb": None}),
        ("roundup_power2_divisions:4", {"roundup_power2_divisions": 4}),
        (
            "roundup_power2_divisions:[256:1,512:2,>:4,]",
            {"roundup_power2_divisions": ((256, 1), (512, 2), (">", 4))},
        ),
        ("roundup_power2_divisions:[]", {"roundup_power2_divisions": None}),
        ("backend:cudaMallocAsync", {"backend": "cudaMallocAsync"}),
        ("pinned_num_register_threads:8", {"other": (("pinned_num_register_threads", "8"),)}),
        (
            "expandable_segments_reserve_by_class:[kv:0.5,tmp:40G]",
            {"other": (("expandable_segments_reserve_by_class", "[kv:0.5,tmp:40G]"),)},
        ),
    ],
)
def test_reads_text_as_torch_does(text: str, expected: dict[str, Any]) -> None:
    """Section 7: blanks ignored, comma at the end allowed, last value wins, numbers end where they stop making sense."""
    assert AllocatorSettings.parse(text) == AllocatorSettings(**expected)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("expandible_segments:True", "no release of torch knows", "did you mean expandable_segments?"),
        ("Max_split_size_mb:128", "no release of torch knows", "did you mean max_split_size_mb?"),
        (
            "expandable_segments:true",
            "must be True or False",
            "write expandable_segments:True, capitals matter",
        ),
        ("expandable_segments:Ture", "must be True or False", "did you mean True?"),
        (
            "backend:cudamallocasync",
            "native or cudaMallocAsync",
            "write backend:cudaMallocAsync, capitals matter",
        ),
        ("max_split_size_mb=128", "has no value", "write max_split_size_mb:128"),
        ("max_split_size_mb", "has no value", "write max_split_size_mb:VALUE"),
        ("max_split_size_mb:abc", "a whole number of MiB; found 'abc'", None),
        ("max_split_size_mb:[128]", "has no value", None),
        ("max_split_size_mb:", "the value of max_split_size_mb is missing", None),
        ("large_segment_size_mb:-1", "found '-1'", None),
        ("garbage_collection_threshold:nan", "a number like 0.8", None),
        (",max_split_size_mb:128", "a key is missing: found ','", None),
        ("max_split_size_mb:128,,", "a key is missing", None),
        ("roundup_power2_divisions:[256:1", "is not closed", "close it"),
        ("roundup_power2_divisions:[256", "is not closed", "close it"),
        ("roundup_power2_divisions:[256:1 512:2]", "is not closed", "close it"),
        ("max_split_size_mb:128;expandable_segments:True", "instead of a comma", "write key:value,key:value"),
        ("expandable_segments_handle_type:posix_fd", "no release of torch knows", None),
    ],
)
def test_refuses_with_a_reason_and_a_way_out(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(SettingsError) as caught:
        AllocatorSettings.parse(text)
    assert message in caught.value.message
    if hint:
        assert caught.value.hint is not None
        assert caught.value.hint.startswith(hint)


def test_names_every_mistake_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        AllocatorSettings.parse("max_split:1,expandable_segments:yes,backend:fast,max_split_size_mb:128")
    for part in ("'max_split'", "'yes'", "'fast'"):
        assert part in caught.value.message


@pytest.mark.parametrize(
    "fields",
    [
        {"max_split_size_mb": -1},
        {"max_split_size_mb": 1.5},
        {"max_split_size_mb": True},
        {"garbage_collection_threshold": float("nan")},
        {"roundup_power2_divisions": ()},
        {"roundup_power2_divisions": (("<", 2),)},
        {"backend": "fast"},
        {"other": (("pinned_free_catch_all", "a,b"),)},
        {"other": (("max_split_size_mb", "128"),)},
        {"other": (("backend", "native"),)},
        {"other": (("no_such_key", "1"),)},
    ],
)
def test_a_value_that_has_no_text_form_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="cannot be an allocator setting"):
        AllocatorSettings(**fields)


def test_replace_changes_only_what_is_named() -> None:
    settings = AllocatorSettings.parse("expandable_segments:True,roundup_power2_divisions:4")
    assert settings.replace(roundup_power2_divisions=None).to_string() == "expandable_segments:True"
