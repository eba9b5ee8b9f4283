"""Streams, events and what record_stream keeps back (semantics reference, section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

MIB = 1 << 20


def test_a_block_recorded_on_another_stream_waits_for_its_event(on_phantom: Server) -> None:
    result = on_phantom("""
def pending():
    blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
    return sum(block["state"] == "active_pending_free" for block in blocks)
side = torch.cuda.Stream()
tensor = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
tensor.record_stream(side)
phantom.hold_events(True)
del tensor
event = phantom.last_event()
phantom.hold_events(False)
held = [allocated(), stat("active_bytes.all.current"), pending()]
other = device_bytes(30 * MIB)
phantom.release_event(*event)
still = pending()
again = device_bytes(30 * MIB)
answer(held=held, mallocs=phantom.counters().mallocs, still=still, after=pending(), different=again != other)
""")
    assert result.held == [0, 30 * MIB, 1]
    # The event is polled at the next malloc only, so the block comes back for the second request, not the first.
    assert result.mallocs == 2
    assert (result.still, result.after) == (1, 0)
    assert result.different


def test_waiting_for_the_stream_completes_held_events(on_phantom: Server) -> None:
    result = on_phantom("""
side = torch.cuda.Stream()
phantom.hold_events(True)
event = side.record_event()
before = [event.query(), side.query(), torch.cuda.current_stream().query()]
side.synchronize()
answer(before=before, after=event.query(), syncs=phantom.counters().stream_syncs)
""")
    assert result.before == [False, False, True]
    assert result.after
    assert result.syncs == 1


def test_out_of_memory_waits_for_pending_blocks(on_phantom: Server) -> None:
    result = on_phantom(
        """
side = torch.cuda.Stream()
tensor = torch.empty(700 * MIB, dtype=torch.uint8, device="cuda")
tensor.record_stream(side)
phantom.hold_events(True)
del tensor
address = device_bytes(600 * MIB)
answer(used=used(), waits=phantom.counters().event_syncs, syncs=stat("num_sync_all_streams"), ooms=stat("num_ooms"))
""",
        total=1 << 30,
    )
    assert result.used == 600 * MIB
    assert result.waits == 1
    assert result.syncs == 1
    assert result.ooms == 0


def test_streams_have_their_own_blocks(on_phantom: Server) -> None:
    result = on_phantom("""
first, second = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
give_back(device_bytes(30 * MIB, first.cuda_stream))
device_bytes(30 * MIB, second.cuda_stream)
same = device_bytes(30 * MIB, first.cuda_stream)
answer(mallocs=phantom.counters().mallocs, priority=second.priority, distinct=first.cuda_stream != second.cuda_stream)
""")
    assert result.mallocs == 2
    assert result.priority == -1
    assert result.distinct


def test_events_measure_and_synchronise(on_phantom: Server) -> None:
    result = on_phantom("""
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
torch.ones(1000, device="cuda").mul_(2)
end.record()
end.synchronize()
torch.cuda.synchronize()
answer(time=start.elapsed_time(end), ready=end.query(), misuses=phantom.counters().misuses)
""")
    assert 0 < result.time < 1
    assert result.ready
    assert result.misuses == 0
