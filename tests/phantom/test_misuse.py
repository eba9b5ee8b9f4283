"""Mistakes are answered as CUDA answers them, counted, and never silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch


def test_a_double_free_is_an_invalid_argument_and_counted(on_phantom: Server) -> None:
    result = on_phantom("""
address = ctypes.c_void_p()
cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(2 * MIB))
codes = [cuda.cudaFree(address), cuda.cudaFree(address), cuda.cudaFree(ctypes.c_void_p(0x1234))]
cuda.cudaGetErrorString.restype = ctypes.c_char_p
answer(codes=codes, last=cuda.cudaGetLastError(), then=cuda.cudaGetLastError(), misuses=phantom.counters().misuses,
       words=cuda.cudaGetErrorString(1).decode())
""")
    assert result.codes == [0, 1, 1]
    assert (result.last, result.then) == (1, 0)
    assert result.misuses == 2
    assert result.words == "invalid argument"


def test_an_unmodelled_entry_point_fails_and_is_named_at_exit(on_phantom: Server) -> None:
    result = on_phantom(
        """
x = torch.ones(10, device="cuda")
try:
    x.untyped_storage()._share_cuda_()
    message = ""
except RuntimeError as error:
    message = str(error)
answer(message=message, called=phantom.unmodelled())
""",
        to_its_end=True,
    )
    assert "operation not supported" in result.message
    assert result.called == ["cudaIpcGetMemHandle"]
    assert "hotbed phantom: not modelled, called by this program: cudaIpcGetMemHandle\n" in result.stderr


def test_a_program_that_calls_nothing_unmodelled_ends_in_silence(on_phantom: Server) -> None:
    result = on_phantom(
        """
x = torch.randn(1000, device="cuda")
y = (x * 2 + 1).to(torch.float16).cpu()
z = torch.zeros(10, device="cuda").copy_(torch.ones(10)).clone()
s = torch.sort(x)[0].sum().item()
answer(called=phantom.unmodelled(), zeros=float(y.abs().sum()))
""",
        to_its_end=True,
    )
    assert result.called == []
    assert "hotbed phantom" not in result.stderr
    assert result.zeros == 0


def test_the_memory_of_the_device_is_fixed_once_something_is_allocated(on_phantom: Server) -> None:
    result = on_phantom("""
phantom.set_total(GIB)
total = torch.cuda.mem_get_info()[1]
keep = device_bytes(512)
try:
    phantom.set_total(2 * GIB)
    refused = False
except control.PhantomError:
    refused = True
answer(total=total, refused=refused)
""")
    assert result.total == 1 << 30
    assert result.refused
