"""Forks and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

MIB = 1 << 20


def test_a_forked_child_is_a_process_of_its_own(on_phantom: Server) -> None:
    result = on_phantom("""
address = ctypes.c_void_p()
cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(100 * MIB))
read, write = os.pipe()
if os.fork() == 0:
    before = used()
    cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(30 * MIB))
    os.write(write, json.dumps([before, used(), phantom.counters().mallocs]).encode())
    os._exit(0)
os.wait()
answer(child=json.loads(os.read(read, 100)), parent=used())
""")
    assert result.child == [0, 30 * MIB, 1]
    assert result.parent == 100 * MIB


def test_threads_share_the_device(on_phantom: Server) -> None:
    result = on_phantom("""
def work(seed):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        held = []
        for step in range(300):
            held.append(torch.empty((seed * 7919 + step * 104729) % (8 * MIB) + 1, dtype=torch.uint8, device="cuda"))
            if step % 3:
                held.pop(step % len(held))
        stream.synchronize()
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
torch.cuda.empty_cache()
counters = phantom.counters()
answer(used=used(), allocated=allocated(), misuses=counters.misuses, balance=counters.mallocs - counters.frees)
""")
    assert result.used == result.allocated == 0
    assert result.misuses == 0
    assert result.balance == 0
