"""Where on the GPU the program's parameters, gradients, buffers and optimizer states lie: addresses, never references."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Holdings = dict[int, dict[str, list[int]]]
"""device → category → addresses of storages"""


class Finder:
    """Looks for tensors that have a role. Runs no operation on any of them."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._tensor = torch.Tensor
        self._module = torch.nn.Module
        self._short: set[int] = set()
        """elements of the modules' parameters that are of fewer than 32 bits"""

    def modules(self, tree: Any = None) -> Holdings:
        """Parameters, buffers, gradients and caches of the module `tree` and those below it; None: of every one alive."""
        found: Holdings = {}
        with self._torch._C.DisableTorchFunctionSubclass():
            for module in _living(self._module) if tree is None else tree.modules():
                parameters = _tensors(module, "_parameters")
                self._short.update(p.numel() for p in parameters if _precision(p) in (1, 2))
                self._add(found, "parameters", parameters)
                self._add(found, "gradients", (p.grad for p in parameters if p.is_leaf))
                self._add(found, "buffers", _tensors(module, "_buffers"))
                self._add(found, "kv cache", self._kept(module))
        return found

    def before_step(self, optimizer: Any) -> Holdings:
        """What `optimizer` steps: parameters and their gradients. Copies in full precision are its state.

        Where a copy is taken for a parameter of a module, or the other way round, what modules() finds is right.
        """
        found: Holdings = {}
        with self._torch._C.DisableTorchFunctionSubclass():
            for parameter in _stepped(optimizer):
                role = "optimizer state" if self._is_copy(parameter) else "parameters"
                self._add(found, role, (parameter,))
                self._add(found, "gradients", (parameter.grad,))
        return found

    def after_step(self, optimizer: Any) -> Holdings:
        """What `optimizer` keeps from step to step."""
        found: Holdings = {}
        with self._torch._C.DisableTorchFunctionSubclass():
            self._add(found, "optimizer state", self._nested(optimizer.state, 0))
        return found

    def optimizers(self) -> list[Any]:
        """Every optimizer that is alive and has a step that torch's hooks see; wrappers may have none."""
        optimizer = self._torch.optim.Optimizer
        return [item for item in _living(optimizer) if hasattr(type(item).step, "hooked")]

    def _is_copy(self, stepped: Any) -> bool:
        """Whether it looks like master weights: of one of the modules' parameters, or of many in one row."""
        if not self._short or _precision(stepped) < _FULL:
            return False
        elements = stepped.numel()
        return elements in self._short or (stepped.dim() == 1 and elements >= max(self._short))

    def _kept(self, module: Any) -> Iterator[Any]:
        """Tensors without a graph in other attributes of `module`, e.g. the keys and values of past tokens."""
        for name, value in list(module.__dict__.items()):
            if name not in _TABLES and isinstance(value, (self._tensor, list, tuple, dict)):
                yield from (tensor for tensor in self._nested(value, 0) if not tensor.requires_grad)

    def _nested(self, value: Any, depth: int) -> Iterator[Any]:
        if isinstance(value, self._tensor):
            yield value
        elif depth < _DEEPEST:
            parts = value.values() if isinstance(value, dict) else value
            if isinstance(parts, (list, tuple, type({}.values()))):
                for part in list(parts):
                    yield from self._nested(part, depth + 1)

    def _add(self, found: Holdings, category: str, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            for device, address in self._places(tensor):
                found.setdefault(device, {}).setdefault(category, []).append(address)

    def _places(self, tensor: Any) -> Iterator[tuple[int, int]]:
        """(device, address of the storage) of `tensor` and of the tensors that it is made of."""
        if tensor is None:
            return
        if hasattr(type(tensor), "__tensor_flatten__"):
            for name in tensor.__tensor_flatten__()[0]:
                yield from self._places(getattr(tensor, name))
        elif tensor.is_sparse:
            yield from self._places(tensor._indices())
            yield from self._places(tensor._values())
        elif tensor.is_cuda and type(tensor).__name__ != "FakeTensor":
            try:
                address = tensor.untyped_storage().data_ptr()
            except (RuntimeError, NotImplementedError):
                # A wrapper without a storage of its own.
                return
            if address:
                yield tensor.get_device(), address


_DEEPEST = 6
_FULL = 4
_TABLES = frozenset(("_parameters", "_buffers", "_modules"))


def _living(kind: type) -> list[Any]:
    # Types, not isinstance(): that would ask lazy objects of the program for their class.
    return [item for item in gc.get_objects() if issubclass(type(item), kind)]


def _tensors(module: Any, table: str) -> list[Any]:
    return [tensor for tensor in (module.__dict__.get(table) or {}).values() if tensor is not None]


def _precision(tensor: Any) -> int:
    """Bytes of each number; 0 where they are no floating-point numbers."""
    return int(tensor.element_size()) if tensor.is_floating_point() else 0


def _stepped(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]
