"""The roundup table. Right values: allocator-semantics 1.3 and 1.4, pytorch's AllocatorConfig_test.cpp."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotbed.settings import TorchVersion
from hotbed.settings.roundup import INTERVALS, Divisions, rounded_bytes, table, written_out
from hotbed.units import MIB

OLD, NEW = TorchVersion(2, 9), TorchVersion(2, 10)
EXCLUSIVE: Divisions = ((256, 4), (512, 2), (">", 8))


def divisions_at(entries: tuple[int, ...], mib: int) -> int:
    return entries[min(mib.bit_length() - 1, INTERVALS - 1)]


def test_a_key_governs_from_itself_to_its_double() -> None:
    """memory-anchors row 7, from PyTorch's own test: 32 -> 8, 64 -> 8, 128 -> 2, ..., 2048 -> 1."""
    entries = table(((64, 8), (128, 2), (256, 4), (512, 2), (1024, 4), (">", 1)), NEW)
    expected = {32: 8, 64: 8, 128: 2, 256: 4, 512: 2, 1024: 4, 2048: 1, 4096: 1, 32768: 1}
    assert {mib: divisions_at(entries, mib) for mib in expected} == expected


def test_greater_overwrites_the_last_key_until_2_9() -> None:
    """Section 1.4: 700 MiB + 1 becomes 738,197,504 in 2.9 and 805,306,368 in 2.10."""
    assert rounded_bytes(700 * MIB + 1, table(EXCLUSIVE, OLD)) == 738197504
    assert rounded_bytes(700 * MIB + 1, table(EXCLUSIVE, NEW)) == 805306368


def test_greater_alone_leaves_the_smallest_out_from_2_10() -> None:
    """Section 1.4: all 16 entries in 2.9, nothing below 2 MiB in 2.10."""
    assert table(((">", 4),), OLD) == (4,) * 16
    assert table(((">", 4),), NEW) == (0, *(4,) * 15)


def test_intervals_never_named_are_not_rounded() -> None:
    """Section 1.4: [64:0,128:2] leaves everything from 256 MiB on unrounded."""
    assert table(((64, 0), (128, 2)), NEW) == (0,) * 7 + (2,) + (0,) * 8


def test_keys_above_the_last_interval_share_it() -> None:
    """Section 1.4: keys above 32768 all land in entry 15."""
    assert table(((131072, 4),), NEW) == (4,) * 16
    assert table(((1024, 2), (131072, 4)), NEW)[-1] == 4


def test_order_and_repeats_do_not_matter_but_the_last_write_wins() -> None:
    """Section 1.4: repeats and keys out of order: last write wins for each entry."""
    assert table(((512, 2), (256, 4), (512, 8)), NEW) == (2,) * 8 + (4, 8) + (0,) * 6


@pytest.mark.parametrize(
    ("request_bytes", "divisions", "block_bytes"),
    [
        (1, None, 512),
        (513, None, 1024),
        (514 * MIB, 1, 514 * MIB),
        (514 * MIB, 2, 768 * MIB),
        (514 * MIB, 4, 640 * MIB),
        (512 * MIB, 4, 512 * MIB),
        (1200, 4, 1536),
        (2048, 4, 2048),
        (2049, 4, 2560),
    ],
)
def test_rounds_requests_as_torch_does(request_bytes: int, divisions: int | None, block_bytes: int) -> None:
    """Section 1.3; memory-anchors row 6 for 514 MiB."""
    assert rounded_bytes(request_bytes, table(divisions, NEW)) == block_bytes


@given(
    st.lists(st.sampled_from([0, 2, 4, 8]), min_size=16, max_size=16).map(tuple), st.sampled_from([OLD, NEW])
)
def test_a_table_written_out_means_the_same_to_every_version(
    entries: tuple[int, ...], version: TorchVersion
) -> None:
    assert table(written_out(entries), version) == entries
