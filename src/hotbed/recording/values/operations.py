"""What the schema of an operation says, and one call of it with the device tensors that take part."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .reading import READERS
from .torch_there import Tensor, torch

if TYPE_CHECKING:
    from .reading import Reading
    from .shadows import Shadow

_CHEAP = frozenset(
    """
    all amax amin any arange argmax argmin argsort bucketize cat clone constant_pad_nd copy_ cumsum eye flip gather
    index index_put_ index_select isin linspace masked_fill_ max min nonzero repeat roll scatter_ searchsorted
    slice_scatter sort stack sum topk tril triu where _index_put_impl_ _to_copy
    """.split()  # noqa: SIM905  (forty quoted names are no easier to read)
)
"""Besides elementwise ones, these take a time in proportion to what they touch."""


class Operation:
    """An operation, looked at once."""

    __slots__ = ("base", "cheap", "name", "number", "pointwise", "random", "reads", "views", "written")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name: str = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        self.base: str = schema.name.partition("::")[2]
        self.number = zlib.crc32(self.name.encode())
        self.written = [
            (place, argument.name)
            for place, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.views = bool(func.is_view) and not self.written
        self.reads = self.name in READERS
        self.random = torch.Tag.nondeterministic_seeded in func.tags
        self.pointwise = torch.Tag.pointwise in func.tags
        self.cheap = self.pointwise or self.base in _CHEAP


@dataclass
class Call:
    """One call. `outs` are its device results, of which those with a new storage have a shadow in `fresh`, by their
    place; `written` are the arguments that it changes."""

    operation: Operation
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: list[Tensor]
    lineage: int
    reading: Reading | None
    outs: list[Tensor]
    fresh: dict[int, Shadow]
    written: list[Tensor]

    def stored(self) -> list[tuple[Tensor, Shadow]]:
        """New results with their shadows."""
        return [(self.outs[place], shadow) for place, shadow in self.fresh.items()]


def tensors_in(value: Any, found: list[Tensor]) -> list[Tensor]:
    """Appends the tensors in nested lists to `found`."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for part in value:
            tensors_in(part, found)
    return found


def device_tensors(value: Any) -> list[Tensor]:
    """The device tensors in nested lists that have a storage: sparse ones have none, and are not followed."""
    return [tensor for tensor in tensors_in(value, []) if tensor.is_cuda and tensor.layout == torch.strided]


def written_by(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The device tensors that a call changes in place."""
    if not operation.written:
        return []
    return device_tensors(
        [args[place] if place < len(args) else kwargs.get(name) for place, name in operation.written]
    )
