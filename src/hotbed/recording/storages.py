"""Which storages on the GPU a tensor stands on: addresses and sizes, without an operation on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[int, int, int]
"""(device, address, bytes) of a storage"""


def storages(tensor: Any) -> Iterator[Place]:
    """Storages of `tensor` and of the tensors that it is made of. Call it within torch's DisableTorchFunctionSubclass."""
    if tensor is None:
        return
    if hasattr(type(tensor), "__tensor_flatten__"):
        for name in tensor.__tensor_flatten__()[0]:
            yield from storages(getattr(tensor, name))
    elif tensor.is_sparse:
        yield from storages(tensor._indices())
        yield from storages(tensor._values())
    elif tensor.is_cuda and type(tensor).__name__ != "FakeTensor":
        try:
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
        except (RuntimeError, NotImplementedError):
            # A wrapper without a storage of its own.
            return
        if address:
            yield tensor.get_device(), address, storage.nbytes()
