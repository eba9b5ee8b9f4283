"""Caps, garbage collection, retries and OOM (semantics reference, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

MIB = 1 << 20
GIB = 1 << 30


def test_a_request_that_exactly_meets_the_cap_passes_and_one_page_more_does_not(on_phantom: Server) -> None:
    result = on_phantom("""
torch.cuda.set_per_process_memory_fraction(0.25)
held = [device_bytes(1 * GIB) for _ in range(4)]
answer(reserved=reserved(), refused=fails(device_bytes, 512), ooms=stat("num_ooms"), retries=stat("num_alloc_retries"),
       device_ooms=phantom.counters().ooms)
""")
    assert result.reserved == 4 * GIB
    assert result.refused
    assert (result.ooms, result.retries) == (1, 1)
    assert result.device_ooms == 0


def test_a_full_device_is_out_of_memory_for_cuda_and_then_for_torch(on_phantom: Server) -> None:
    result = on_phantom(
        """
device_bytes(100 * MIB)
cached = device_bytes(200 * MIB)
give_back(cached)
free, total = torch.cuda.mem_get_info()
fits = device_bytes(750 * MIB)
refused = fails(device_bytes, 400 * MIB)
counters = phantom.counters()
answer(free=free, total=total, refused=refused, reserved=reserved(), used=used(), ooms=counters.ooms,
       frees=counters.frees, retries=stat("num_alloc_retries"))
""",
        total=1 * GIB,
    )
    assert result.total == GIB
    assert result.free == GIB - 300 * MIB
    # 750 MiB fit after the cached 200 MiB went back; 400 more do not.
    assert result.refused
    assert result.used == result.reserved == 850 * MIB
    assert (result.ooms, result.frees, result.retries) == (3, 1, 2)


def test_garbage_collection_works_only_under_a_limit(on_phantom: Server) -> None:
    program = """
FRACTION
addresses = [device_bytes(100 * MIB) for _ in range(8)]
for address in addresses: give_back(address)
device_bytes(300 * MIB)
answer(frees=phantom.counters().frees, reserved=reserved(), version=version)
"""
    settings = "garbage_collection_threshold:0.5"
    limited = on_phantom(
        program.replace("FRACTION", "torch.cuda.set_per_process_memory_fraction(0.999999)"),
        total=GIB,
        settings=settings,
    )
    unlimited = on_phantom(program.replace("FRACTION", ""), total=4 * GIB, settings=settings)
    # 800 MiB cached, 512 allowed: all eight blocks are of one age, so one round frees them all.
    assert limited.frees == 8
    assert limited.reserved == 300 * MIB
    assert unlimited.frees == 0
    assert unlimited.reserved == 1100 * MIB


def test_a_fraction_of_one_is_a_limit_until_2_9_and_none_later(on_phantom: Server) -> None:
    result = on_phantom(
        """
torch.cuda.set_per_process_memory_fraction(1.0)
addresses = [device_bytes(100 * MIB) for _ in range(8)]
for address in addresses: give_back(address)
device_bytes(150 * MIB)
answer(frees=phantom.counters().frees, version=version)
""",
        total=GIB,
        settings="garbage_collection_threshold:0.5",
    )
    assert result.frees == (8 if result.version < [2, 10] else 0)


def test_a_released_segment_goes_back_to_the_device(on_phantom: Server) -> None:
    result = on_phantom("""
keep = device_bytes(512)
addresses = [device_bytes(30 * MIB) for _ in range(3)]
for address in addresses: give_back(address)
before = used()
torch.cuda.empty_cache()
answer(before=before, after=used(), frees=phantom.counters().frees, counted=stat("num_device_free"))
""")
    assert result.before == 92 * MIB
    assert result.after == 2 * MIB
    assert result.frees == result.counted == 3
