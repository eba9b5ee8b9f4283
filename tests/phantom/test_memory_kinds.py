"""The other ways to memory: stream-ordered, pinned, several devices, histories, and the figures about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

MIB = 1 << 20
GIB = 1 << 30


def test_the_stream_ordered_backend_counts_and_gives_back(on_phantom: Server) -> None:
    # The backend is chosen when torch is loaded, so this program starts an interpreter of its own.
    result = on_phantom(
        """
import subprocess
child = '''
import json, torch
MIB = 1 << 20
torch.cuda.init()
a = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
b = a + 1
torch.cuda.synchronize()
stats = torch.cuda.memory_stats()
now = [stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]]
del a, b
torch.cuda.empty_cache()
stats = torch.cuda.memory_stats()
peak = stats["allocated_bytes.all.peak"]
after = [stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"], torch.cuda.mem_get_info()[0]]
try:
    torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    oom = False
except torch.cuda.OutOfMemoryError:
    oom = True
print(json.dumps(dict(now=now, after=after, peak=peak, oom=oom, backend=torch.cuda.get_allocator_backend())))
'''
env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
done = subprocess.run([sys.executable, "-W", "ignore", "-c", child], capture_output=True, text=True, env=env)
assert done.returncode == 0, done.stderr
answer(**json.loads(done.stdout))
""",
        total=GIB,
    )
    assert result.backend == "cudaMallocAsync"
    assert result.now == [200 * MIB, 224 * MIB]
    assert result.after == [0, 0, GIB]
    assert result.peak == 200 * MIB
    assert result.oom


def test_pinned_memory_is_host_memory_that_the_device_knows(on_phantom: Server) -> None:
    result = on_phantom("""
pinned = torch.arange(1000, pin_memory=True)
values = int(pinned.sum())
on_device = pinned.to("cuda", non_blocking=True)
counters = phantom.counters()
answer(values=values, pinned=pinned.is_pinned(), plain=torch.arange(3).is_pinned(), allocs=counters.host_allocs,
       host=counters.host_bytes, copied=torch.arange(5).pin_memory().is_pinned(), misuses=counters.misuses)
""")
    assert result.values == 499500
    assert (result.pinned, result.plain, result.copied) == (True, False, True)
    assert result.allocs == 1
    assert result.host >= 8000
    assert result.misuses == 0


def test_each_device_has_its_own_memory(on_phantom: Server) -> None:
    result = on_phantom(
        """
a = torch.ones(30 * MIB, dtype=torch.uint8, device="cuda:1")
b = a.to("cuda:3")
with torch.cuda.device(2):
    free, total = torch.cuda.mem_get_info()
names = {torch.cuda.get_device_properties(i).uuid.bytes[-1] for i in range(4)}
answer(count=torch.cuda.device_count(), used=[used(i) for i in range(4)], free=free, total=total, distinct=len(names),
       peers=torch.cuda.can_device_access_peer(0, 1), misuses=phantom.counters().misuses)
""",
        count=4,
    )
    assert result.count == 4
    assert result.used == [0, 30 * MIB, 0, 30 * MIB]
    assert result.free == result.total == 16 * GIB
    assert result.distinct == 4
    assert result.peers
    assert result.misuses == 0


def test_cuda_visible_devices_chooses_and_nvml_still_sees_all(on_phantom: Server) -> None:
    result = on_phantom(
        """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
seen = ctypes.c_uint()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetCount_v2(ctypes.byref(seen))
uuid = torch.cuda.get_device_properties(0).uuid.bytes[-1]
answer(count=torch.cuda.device_count(), first=uuid, nvml=seen.value, capability=torch.cuda.get_device_capability())
""",
        count=4,
        env={"CUDA_VISIBLE_DEVICES": "2,0"},
    )
    assert result.count == 2
    assert result.first == 2
    assert result.nvml == 4
    assert result.capability == [9, 0]


def test_history_and_snapshot_tell_what_happened(on_phantom: Server) -> None:
    result = on_phantom("""
torch.cuda.memory._record_memory_history(max_entries=1000)
x = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
del x
torch.cuda.empty_cache()
snapshot = torch.cuda.memory._snapshot()
trace = [(entry["action"], entry["size"]) for entry in snapshot["device_traces"][0]]
answer(trace=trace, segments=len(snapshot["segments"]), summary="PyTorch CUDA memory summary" in torch.cuda.memory_summary())
""")
    size = 30 * MIB
    kinds = ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free"]
    assert result.trace == [[kind, size] for kind in kinds]
    assert result.segments == 0
    assert result.summary
