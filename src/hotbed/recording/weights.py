"""Large weights that a program draws on the CPU: nobody looks at all of their numbers, so most of them are repeated."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST = 1 << 21
"""elements of a tensor of which not all are drawn"""
_DRAWN = 1 << 18
"""first elements that are"""
_GROUP, _LAST_GROUPS = 16, 64
"""normal numbers are made in groups of 16; the last ones are drawn too, as versions differ in what they do with a rest"""
_PERIOD = 262139
"""elements after which the numbers repeat. A prime: no two rows of a matrix are alike that has not as many"""
_STATE_BYTES = 5056
"""of the generator, in every torch since 1.6"""


def draw_less(torch: Any, control: Any) -> None:
    """Has `normal_` and `uniform_` draw the first and last numbers of a large CPU tensor only, and repeat the first.

    The generator is left as if all had been drawn, so all later draws are those of the program. Everything with a
    generator of its own, in other memory than plain CPU memory, or under a mode of torch is drawn as ever.
    """
    if torch.default_generator.get_state().numel() != _STATE_BYTES:
        return
    kinds = (torch.Tensor, torch.nn.Parameter)
    types = (torch.float32, torch.float16, torch.bfloat16)

    def large(tensor: Any) -> bool:
        return (
            type(tensor) in kinds
            and tensor.numel() >= _LEAST
            and tensor.dtype in types
            and tensor.device.type == "cpu"
            and tensor.is_contiguous()
            and not (tensor.requires_grad and torch.is_grad_enabled())
            and not (torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack())
            and not torch.compiler.is_compiling()
        )

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def draw(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if keywords.get("generator") is not None or not large(tensor):
                return original(tensor, *arguments, **keywords)
            flat = tensor.detach().view(-1)
            end = (len(flat) // _GROUP - _LAST_GROUPS) * _GROUP
            original(flat[:_DRAWN], *arguments, **keywords)
            _pass_over(torch, control, end - _DRAWN)
            original(flat[end:], *arguments, **keywords)
            _repeat(flat.data_ptr(), end, flat.element_size())
            return tensor

        return draw

    torch.Tensor.normal_ = wrapped(torch.Tensor.normal_)
    torch.Tensor.uniform_ = wrapped(torch.Tensor.uniform_)


def _pass_over(torch: Any, control: Any, draws: int) -> None:
    state = torch.default_generator.get_state()
    control.pass_over(state.data_ptr(), draws)
    torch.default_generator.set_state(state)


def _repeat(address: int, end: int, each_bytes: int) -> None:
    for done in range(_PERIOD, end, _PERIOD):
        ctypes.memmove(address + done * each_bytes, address, min(_PERIOD, end - done) * each_bytes)
