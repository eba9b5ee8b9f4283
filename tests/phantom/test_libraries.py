"""Stand-ins for CUDA's libraries: what torch asks of them works, and what it allocates for them is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.phantom.conftest import Server


def test_products_of_every_type_have_gradients(on_phantom: Server) -> None:
    result = on_phantom("""
shapes = []
for name in ("float32", "float64", "float16", "bfloat16", "complex64"):
    kind = getattr(torch, name)
    a, b = (torch.randn(n, n + 2, device="cuda", dtype=kind, requires_grad=True) for n in (6, 8))
    batch = torch.randn(3, 4, 6, device="cuda", dtype=kind, requires_grad=True)
    bias = torch.randn(10, device="cuda", dtype=kind)
    out = torch.addmm(bias, a, b)
    (out.real.sum() + torch.bmm(batch, batch.mT).real.sum() + (a @ b).real.sum()).backward()
    shapes.append([list(t.grad.shape) for t in (a, b, batch)])
answer(shapes=shapes)
""")
    assert result.shapes == [[[6, 8], [8, 10], [3, 4, 6]]] * 5


def test_quantised_products_and_attention_run(on_phantom: Server) -> None:
    result = on_phantom("""
from torch.nn.attention import SDPBackend, sdpa_kernel
x = torch.ones(64, 64, device="cuda").to(torch.float8_e4m3fn)
one = torch.ones((), device="cuda")
eight = torch.ones(64, 64, device="cuda", dtype=torch.int8)
kinds = [str(torch._scaled_mm(x, x.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16).dtype),
         str(torch._int_mm(eight, eight).dtype)]
shapes = []
for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
    q = torch.randn(1, 2, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with sdpa_kernel(backend):
        torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    shapes.append(list(q.grad.shape))
answer(kinds=kinds, shapes=shapes)
""")
    assert result.kinds == ["torch.bfloat16", "torch.int32"]
    assert result.shapes == [[1, 2, 128, 64]] * 3


def test_a_product_on_hopper_makes_torch_allocate_a_workspace_of_32_mib(on_phantom: Server) -> None:
    # aten/src/ATen/cuda/CUDABlas: 32 MiB from sm_90 on, 8.125 MiB (":4096:2:16:8") before.
    result = on_phantom("""
x = torch.ones(8, 8, device="cuda")
before = allocated()
y = x @ x
answer(grown=allocated() - before - 512, calls=phantom.libraries()["cublas"],
       lent=[[control.LIBRARIES[w.library], w.bytes, w.device] for w in phantom.workspaces()])
""")
    assert result.grown in (32 * 2**20, 32 * 2**20 + 1024)
    assert result.calls > 0
    assert ["cublas", 32 * 2**20, 0] in result.lent


def test_a_graph_of_products_is_not_empty(on_phantom: Server) -> None:
    result = on_phantom("""
x = torch.ones(8, 8, device="cuda")
x @ x
torch.cuda.synchronize()
warnings.simplefilter("error")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x @ x
graph.replay()
answer(shape=list(y.shape))
""")
    assert result.shape == [8, 8]
