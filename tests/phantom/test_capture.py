"""CUDA graphs: capture states, private pools, and what is forbidden meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

MIB = 1 << 20


def test_a_graph_has_a_pool_of_its_own_that_lives_as_long_as_it(on_phantom: Server) -> None:
    result = on_phantom("""
x = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    inside = torch.cuda.is_current_stream_capturing()
    y = x + 1
    z = y * 2
graph.replay()
torch.cuda.synchronize()
pools = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot()}
del y, z
torch.cuda.empty_cache()
kept = used()
graph.reset()
torch.cuda.empty_cache()
answer(inside=inside, outside=torch.cuda.is_current_stream_capturing(), pools=len(pools), kept=kept, after=used(),
       misuses=phantom.counters().misuses, unmodelled=phantom.unmodelled())
""")
    assert result.inside
    assert not result.outside
    assert result.pools == 2
    # 30 MiB of x; y and z of the graph stay until it is gone.
    assert result.kept >= 90 * MIB
    assert result.after < 40 * MIB
    assert result.misuses == 0
    assert result.unmodelled == []


def test_work_on_a_side_stream_joins_the_capture(on_phantom: Server) -> None:
    result = on_phantom("""
x = torch.ones(1000, device="cuda")
side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    a = x + 1
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        joined = torch.cuda.is_current_stream_capturing()
        b = a * 2
    torch.cuda.current_stream().wait_stream(side)
    c = b + 1
with torch.cuda.stream(side):
    left = torch.cuda.is_current_stream_capturing()
answer(joined=joined, left=left)
""")
    assert result.joined
    assert not result.left


@pytest.mark.parametrize(
    ("forbidden", "message"),
    [
        ("torch.cuda.synchronize()", "operation not permitted when stream is capturing"),
        ("x.sum().item()", "operation not permitted when stream is capturing"),
        ("side.wait_stream(torch.cuda.current_stream()); leave_behind()", "unjoined work"),
    ],
    ids=["synchronize", "item", "unjoined"],
)
def test_what_a_capture_forbids_is_the_error_that_cuda_gives(
    on_phantom: Server, forbidden: str, message: str
) -> None:
    result = on_phantom(f"""
x = torch.ones(1000, device="cuda")
side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
def leave_behind():
    with torch.cuda.stream(side):
        x + 1
message = ""
try:
    with torch.cuda.graph(graph):
        y = x + 1
        {forbidden}
except RuntimeError as error:
    chain = [str(error), str(error.__context__)]
    message = " ".join(chain)
answer(message=message, capturing=torch.cuda.is_current_stream_capturing())
""")
    assert message in result.message
    assert not result.capturing


def test_pools_of_the_user_are_kept_apart(on_phantom: Server) -> None:
    result = on_phantom("""
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    a = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
b = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
del a
c = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
answer(mallocs=phantom.counters().mallocs, used=used(), reserved=reserved())
""")
    assert result.mallocs == 3
    assert result.used == result.reserved
