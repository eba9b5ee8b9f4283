"""Which environment variable counts. Right values: allocator-semantics 1.1 and 7, measured on 2.9.1, 2.11.0, 2.14.1."""

from __future__ import annotations

import pytest

from hotbed.settings import TorchVersion, from_environment

CUDA, GENERIC, UNCACHED = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"
EXP, SPLIT = "expandable_segments:True", "max_split_size_mb:64"


def test_the_generic_name_is_not_read_by_2_9() -> None:
    """p#183387, memory-anchors row 8: set on 2.9.1 it has no effect."""
    found = from_environment({GENERIC: EXP}, TorchVersion(2, 9, 1))
    assert (found.name, found.text) == (None, "")
    (finding,) = found.findings
    assert (finding.rule, finding.severity) == ("name-not-read", "error")
    assert finding.hint == "export PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'"


def test_the_cuda_name_wins_from_2_10() -> None:
    """Section 7: if both are set the CUDA one wins."""
    found = from_environment({GENERIC: EXP, CUDA: SPLIT}, TorchVersion(2, 10))
    assert (found.name, found.text) == (CUDA, SPLIT)
    assert [finding.rule for finding in found.findings] == ["name-outvoted"]


def test_an_empty_cuda_name_still_wins() -> None:
    found = from_environment({GENERIC: EXP, CUDA: ""}, TorchVersion(2, 14))
    assert (found.name, found.text) == (CUDA, "")
    assert "although it is empty" in found.findings[0].message


def test_the_generic_name_alone_is_read_from_2_10() -> None:
    found = from_environment({GENERIC: EXP}, TorchVersion(2, 10))
    assert (found.name, found.text, found.findings) == (GENERIC, EXP, ())


def test_equal_variables_are_no_conflict() -> None:
    assert from_environment({GENERIC: EXP, CUDA: EXP}, TorchVersion(2, 14)).findings == ()


def test_nothing_set_is_a_value_too() -> None:
    assert from_environment({}, TorchVersion(2, 14)).name is None


@pytest.mark.parametrize(
    ("version", "value", "rule"),
    [
        ("2.6", "0", "caching-off"),
        ("2.6", "", "caching-off"),
        ("2.6", "1", "caching-off"),
        ("2.7", "1", "caching-off"),
        ("2.7", "0", "caching-on"),
        ("2.14", "", "caching-on"),
    ],
)
def test_what_switches_caching_off(version: str, value: str, rule: str) -> None:
    """Section 1.1: until 2.6 any value, from 2.7 only a true one."""
    found = from_environment({UNCACHED: value}, TorchVersion.parse(version))
    assert [finding.rule for finding in found.findings] == [rule]
