"""Expandable segments: pages, reservations, growth, release (semantics reference, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

MIB = 1 << 20
GIB = 1 << 30
EXPANDABLE = "expandable_segments:True"


def test_reservations_are_nine_eighths_of_the_device_in_whole_pages(on_phantom: Server) -> None:
    result = on_phantom(
        """
small = device_bytes(512)
first = phantom.counters()
large = device_bytes(2 * MIB)
second = phantom.counters()
answer(small=first.reserve_bytes, large=second.reserve_bytes - first.reserve_bytes, reserves=second.reserves,
       small_page=first.create_bytes, large_page=second.create_bytes - first.create_bytes, creates=second.creates,
       mallocs=second.mallocs, segments=stat("segment.all.current"))
""",
        settings=EXPANDABLE,
    )
    assert (result.small, result.large) == (19327352832, 19335741440)
    assert (result.small_page, result.large_page) == (2 * MIB, 20 * MIB)
    assert (result.reserves, result.creates) == (2, 2)
    assert (result.mallocs, result.segments) == (0, 0)


def test_growth_maps_only_what_is_missing(on_phantom: Server) -> None:
    result = on_phantom(
        """
first = device_bytes(25 * MIB)
one = used()
second = device_bytes(30 * MIB)
answer(one=one, two=used(), reserved=reserved(), apart=second - first, maps=phantom.counters().maps,
       mallocs=stat("num_device_alloc"))
""",
        settings=EXPANDABLE,
    )
    # Two pages of 20 MiB hold 25; 15 are left, so 30 more take one page.
    assert result.one == 40 * MIB
    assert result.two == result.reserved == 60 * MIB
    assert result.apart == 25 * MIB
    assert result.maps == 3
    assert result.mallocs == 2


def test_release_unmaps_whole_pages_and_growth_fills_the_gap_first(on_phantom: Server) -> None:
    result = on_phantom(
        """
blocks = [device_bytes(20 * MIB) for _ in range(4)]
give_back(blocks[1])
torch.cuda.empty_cache()
after = used()
again = device_bytes(20 * MIB)
counters = phantom.counters()
answer(after=after, used=used(), same=again == blocks[1], unmaps=counters.unmaps, releases=counters.releases,
       frees=stat("num_device_free"), misuses=counters.misuses)
""",
        settings=EXPANDABLE,
    )
    assert result.after == 60 * MIB
    assert result.used == 80 * MIB
    assert result.same
    assert result.unmaps == result.frees == 1
    assert result.misuses == 0


def test_everything_goes_back_and_so_does_the_reservation(on_phantom: Server) -> None:
    result = on_phantom(
        """
blocks = [device_bytes(size) for size in (512, 3 * MIB, 90 * MIB)]
for block in blocks: give_back(block)
torch.cuda.empty_cache()
counters = phantom.counters()
answer(used=used(), reserved=reserved(), reserves=counters.reserves, address_frees=counters.address_frees,
       creates=counters.creates, releases=counters.releases)
""",
        settings=EXPANDABLE,
    )
    assert result.used == result.reserved == 0
    assert result.reserves == result.address_frees == 2
    assert result.creates == result.releases


def test_a_growing_segment_that_meets_the_end_of_memory_leaves_nothing_behind(on_phantom: Server) -> None:
    result = on_phantom(
        """
keep = device_bytes(900 * MIB)
refused = fails(device_bytes, 300 * MIB)
answer(refused=refused, used=used(), reserved=reserved(), ooms=stat("num_ooms"))
""",
        settings=EXPANDABLE,
        total=1 * GIB,
    )
    assert result.refused
    assert result.used == result.reserved
    assert result.ooms == 1
