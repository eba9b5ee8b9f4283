"""Random programs against a small checker that knows nothing of the allocator: live blocks never overlap, statistics
equal an independent count, the device holds what torch reserved, and in the end everything is returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

MIB = 1 << 20
CHECKER = """
import bisect, random

class Checker:
    def __init__(self):
        self.live = {}  # address -> requested size
        self.starts = []
        self.requested = self.oom = 0

    def add(self, address, size):
        i = bisect.bisect(self.starts, address)
        below, above = self.starts[i - 1 : i], self.starts[i : i + 1]
        assert not below or below[0] + self.live[below[0]] <= address, "overlaps the block below"
        assert not above or address + size <= above[0], "overlaps the block above"
        assert address % 512 == 0
        self.starts.insert(i, address)
        self.live[address] = size
        self.requested += size

    def remove(self, address):
        self.starts.remove(address)
        self.requested -= self.live.pop(address)

    def check(self):
        stats = torch.cuda.memory_stats()
        assert stats["allocation.all.current"] == len(self.live), "number of allocations"
        assert stats["requested_bytes.all.current"] == self.requested, "requested bytes"
        assert stats["allocated_bytes.all.current"] >= self.requested
        assert stats["active_bytes.all.current"] >= stats["allocated_bytes.all.current"]
        assert stats["reserved_bytes.all.current"] >= stats["active_bytes.all.current"]
        assert stats["reserved_bytes.all.current"] == used(), "what the device holds"
        assert stats["num_ooms"] == self.oom
"""
PROGRAM = """
draw = random.Random(SEED)
checker = Checker()
streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
tensors, held = [], {}

def size():
    return draw.choice([draw.randint(1, 4096), draw.randint(1, 2 * MIB), draw.randint(1, 60 * MIB)])

def allocate():
    wanted = size()
    try:
        with torch.cuda.stream(draw.choice(streams)):
            tensor = torch.empty(wanted, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        checker.oom += 1
        return
    checker.add(tensor.data_ptr(), wanted)
    tensors.append(tensor)

def free():
    tensor = tensors.pop(draw.randrange(len(tensors)))
    address, wanted = tensor.data_ptr(), tensor.numel()
    if draw.random() < 0.2:
        tensor.record_stream(streams[draw.randrange(3)])
        before = phantom.last_event()
        phantom.hold_events(True)
        del tensor
        phantom.hold_events(False)
        if phantom.last_event() != before:
            held[phantom.last_event()] = wanted
    checker.remove(address)

for step in range(STEPS):
    if not tensors or draw.random() < 0.52:
        allocate()
    else:
        free()
    if draw.random() < 0.05:
        for event in held: phantom.release_event(*event)
        torch.cuda.synchronize()
        held.clear()
        give_back(device_bytes(1))
    if draw.random() < 0.01:
        torch.cuda.empty_cache()
        held.clear()
    if step % 10 == 0 and not held:
        give_back(device_bytes(1))
        checker.check()
tensors.clear()
torch.cuda.synchronize()
torch.cuda.empty_cache()
counters = phantom.counters()
answer(used=used(), reserved=reserved(), misuses=counters.misuses, ooms=checker.oom, host=counters.host_bytes,
       balance=counters.mallocs - counters.frees, handles=counters.creates - counters.releases)
"""


@pytest.mark.parametrize(
    "settings",
    [
        "",
        "expandable_segments:True",
        "max_split_size_mb:32,garbage_collection_threshold:0.6",
        "roundup_power2_divisions:4",
        "expandable_segments:True,max_split_size_mb:64",
    ],
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_random_programs(on_phantom: Server, settings: str, seed: int) -> None:
    program = CHECKER + PROGRAM.replace("SEED", str(seed)).replace("STEPS", "1200")
    result = on_phantom(program, settings=settings, total=200 * MIB + seed * 800 * MIB)
    assert result.used == result.reserved == 0
    assert result.balance == result.handles == 0
    assert result.misuses == 0
    assert seed or result.ooms > 0
