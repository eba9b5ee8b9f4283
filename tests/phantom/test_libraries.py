"""Stand-ins for CUDA's libraries: what torch asks of them works, and what it allocates for them is counted."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.phantom.conftest import Server

MEASURED = Path(__file__).parent.parent / "data" / "h200" / "library_workspaces.jsonl.xz"


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


def test_factorisations_transforms_and_sparse_products_run(on_phantom: Server) -> None:
    result = on_phantom("""
linalg = torch.linalg
x = torch.randn(3, 8, 8, device="cuda", requires_grad=True)
shapes = [list(t.shape) for t in (
    linalg.qr(x)[0], linalg.svd(x)[1], linalg.eigh(x)[0], linalg.cholesky(x), linalg.lu_factor(x)[0],
    linalg.solve(x, x), torch.fft.rfft(x), torch.fft.fft2(x))]
(linalg.inv(x).sum() + torch.fft.irfft(torch.fft.rfft(x)).sum()).backward()
sparse = torch.sparse_csr_tensor(torch.arange(0, 9), torch.arange(8), torch.ones(8), (8, 8), device="cuda")
other = torch.sparse_csr_tensor(torch.arange(0, 9), torch.arange(8).flip(0), torch.ones(8), (8, 8), device="cuda")
shapes.append(list((sparse @ x[0]).shape))
answer(shapes=shapes, grad=list(x.grad.shape), called=phantom.unmodelled(), used=sorted(phantom.libraries()),
       values=[(sparse + other)._nnz(), (sparse @ sparse)._nnz()], remarks=phantom.remarks())
""")
    square = [3, 8, 8]
    assert result.shapes == [square, [3, 8], [3, 8], square, square, square, [3, 8, 5], square, [8, 8]]
    assert result.grad == square
    assert result.called == []
    assert {"cublas", "cufft", "cusolver", "cusparse"} <= set(result.used)
    # The sum may hold as many values as both; of 8 times 8 values evenly spread, each meets one.
    assert result.values == [16, 8]
    # The sizes for sums and products of sparse matrices are not modelled, all others are.
    asked = [remark.split()[3] for remark in result.remarks if "is not modelled" in remark]
    assert asked
    assert all(name.startswith(("cusparseSpGEMM", "cusparseScsrgeam2")) for name in asked)


def measured(kind: str, op: str, n: int, batch: int, dtype: str | None = None) -> list[int]:
    """What one call allocated (+) and freed (-) on the H200, in bytes."""
    with lzma.open(MEASURED, "rt") as lines:
        for row in map(json.loads, lines):
            if (row["kind"], row["op"], row["n"], row.get("batch"), row.get("dtype")) == (
                kind,
                op,
                n,
                batch,
                dtype,
            ):
                return list(row["log"])
    raise AssertionError(op)


def test_factorisations_and_transforms_allocate_what_they_do_on_an_h200(on_phantom: Server) -> None:
    # torch 2.11 on the H200: other releases of torch may choose other algorithms, and keep other tensors.
    linalg = [("qr", 64, 1), ("svd", 256, 8), ("cholesky", 1024, 1), ("lu_factor", 2048, 1), ("eigh", 16, 8)]
    fft = [("fft", 8191, 1), ("fft", 100000, 8), ("rfft", 8191, 1), ("rfft", 1009, 8)]
    result = on_phantom(f"""
def log(call):
    torch.cuda.memory._record_memory_history(enabled="all", context=None)
    call()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    sign = {{"alloc": 1, "free_completed": -1}}
    return [sign[entry["action"]] * entry["size"] for entry in trace if entry["action"] in sign]

logs = []
torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
for name, n, batch in {linalg!r}:
    x = torch.randn(*([batch] if batch > 1 else []), n, n, device="cuda")
    logs.append(log(lambda: getattr(torch.linalg, name)(x)))
for name, n, batch in {fft!r}:
    x = torch.randn(batch, n, device="cuda", dtype=torch.complex64 if name == "fft" else torch.float32)
    logs.append(log(lambda: getattr(torch.fft, name)(x)))
answer(logs=logs, version=list(version), remarks=phantom.remarks())
""")
    assert not any("is not modelled" in remark for remark in result.remarks)
    expected = [measured("linalg", *row, "float32") for row in linalg] + [
        measured("fft", *row) for row in fft
    ]
    if result.version == [2, 11]:
        assert result.logs == expected
    for log, on_h200 in zip(result.logs, expected, strict=True):
        assert max(log) == max(on_h200)


def test_code_compiled_at_run_time_loads_and_runs(on_phantom: Server) -> None:
    result = on_phantom("""
square = torch.cuda.jiterator._create_jit_fn("template <typename T> T square(T x) { return x * x; }")
out = square(torch.ones(8, device="cuda"))
answer(shape=list(out.shape), used=sorted(phantom.libraries()))
""")
    assert result.shape == [8]
    assert "nvrtc" in result.used
    assert "modules" in result.used


def test_no_real_library_is_mapped_and_every_name_leads_to_the_phantom(on_phantom: Server) -> None:
    result = on_phantom("""
torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
major = torch.version.cuda.split(".")[0]
mapped = {line.split("/")[-1].strip() for line in open("/proc/self/maps") if ".so" in line}
real = [name for name in mapped if name.startswith(("libcudart", "libcublas", "libcusolver", "libcusparse",
                                                    "libcufft.", "libcurand", "libnvrtc"))]
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
same = address(ctypes.CDLL(f"libcublas.so.{major}").cublasCreate_v2) == address(cuda.cublasCreate_v2)
runtime, cublas = ctypes.c_int(), ctypes.c_int()
ctypes.CDLL(f"libcudart.so.{major}").cudaRuntimeGetVersion(ctypes.byref(runtime))
ctypes.CDLL(f"libcublas.so.{major}").cublasGetVersion_v2(None, ctypes.byref(cublas))
answer(real=real, same=same, majors=[int(major), runtime.value // 1000, cublas.value // 10000])
""")
    assert result.real == []
    assert result.same
    assert len(set(result.majors)) == 1
