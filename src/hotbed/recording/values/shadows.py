"""CPU copies of small device storages, found by storage so that views and in-place writes share them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .torch_there import Tensor, torch

if TYPE_CHECKING:
    from .phantom import Phantom
_MOST_NUMBERS, _MOST_INDICES = 1 << 16, 1 << 20
"""Elements of a tensor that is followed. Routing tables and masks of integers and booleans matter more than numbers,
and cost less."""

MOST_DERIVED = 1 << 24
"""Elements of a tensor that is followed where a cheap operation makes it of known ones: grids, anchors, overlaps."""

_BIG_BYTES, _SWEEP_BYTES = 1 << 16, 1 << 26
"""A shadow of this many bytes is dropped soon after its storage; big ones made between two sweeps."""

_MOST_BYTES = _MOST_INDICES * 8


class Shadow:
    """What is known of one device storage.

    `data` is a CPU storage with the same bytes; `fill` the value of every element, for a storage of any size; both
    None: the content is unknown. `guess` says in words which guess the content rests on, None for none. `lineage`
    is a number that depends on all that led to the content, so that what is computed twice is guessed alike.
    """

    __slots__ = ("data", "fill", "guess", "lineage", "pointer", "size")

    def __init__(self, pointer: int, size: int, lineage: int) -> None:
        self.pointer = pointer
        self.size = size
        self.lineage = lineage
        self.data: Any = None
        self.fill: bool | float | None = None
        self.guess: str | None = None

    def forget(self) -> None:
        """The content is unknown from here on."""
        self.data = self.fill = self.guess = None


class Shadows:
    """Shadows of all device storages seen, by the address of the storage object.

    Nothing here keeps a tensor of the program alive. An address that is used again gets a new shadow, as every
    operation that makes a storage comes by; pointer and size guard against the few that do not.
    """

    def __init__(self, control: Phantom) -> None:
        self._control = control
        self._by_storage: dict[int, Shadow] = {}
        self._big: dict[int, tuple[Shadow, Any]] = {}
        self._unswept_bytes = 0

    def of(self, tensor: Tensor) -> Shadow:
        """The shadow of the storage behind a device tensor, made on first sight."""
        storage = tensor.untyped_storage()
        shadow = self._by_storage.get(storage._cdata)
        if shadow is None or shadow.pointer != storage.data_ptr() or shadow.size != storage.nbytes():
            shadow = self.renew(tensor, hash((storage.nbytes(), 7)))
            self.look_up(shadow)
        return shadow

    def renew(self, tensor: Tensor, lineage: int) -> Shadow:
        """A new shadow, with nothing known, for a storage that was just made."""
        storage = tensor.untyped_storage()
        shadow = Shadow(storage.data_ptr(), storage.nbytes(), lineage)
        self._by_storage[storage._cdata] = shadow
        return shadow

    def watch(self, tensor: Tensor) -> None:
        """Lets the bytes of a big shadow go once the storage of `tensor` has gone."""
        storage = tensor.untyped_storage()
        shadow = self._by_storage.get(storage._cdata)
        if shadow is None or shadow.data is None or shadow.size < _BIG_BYTES or id(shadow) in self._big:
            return
        self._big[id(shadow)] = shadow, torch.multiprocessing.reductions.StorageWeakRef(storage)
        self._unswept_bytes += shadow.size
        if self._unswept_bytes > _SWEEP_BYTES:
            self._sweep()

    def _sweep(self) -> None:
        self._unswept_bytes = 0
        for key, (shadow, reference) in list(self._big.items()):
            if reference.expired():
                shadow.forget()
                del self._big[key]
                if self._by_storage.get(reference.cdata) is shadow:
                    del self._by_storage[reference.cdata]

    def look_up(self, shadow: Shadow) -> None:
        """Takes what the host has just written, e.g. for torch.tensor([1, 2], device="cuda")."""
        if not 0 < shadow.size <= _MOST_BYTES:
            return
        content = self._control.certain_bytes(shadow.pointer, shadow.size)
        if content is not None:
            shadow.data = torch.frombuffer(bytearray(content), dtype=torch.uint8).untyped_storage()


def small(tensor: Tensor) -> bool:
    """Whether the tensor and the storage behind it are small enough to be followed."""
    most: int = _MOST_NUMBERS if tensor.is_floating_point() or tensor.is_complex() else _MOST_INDICES
    each: int = tensor.element_size()
    return bool(tensor.numel() <= most and tensor.untyped_storage().nbytes() <= most * each)


def covers(tensor: Tensor, shadow: Shadow) -> bool:
    """Whether writing the tensor writes the whole storage."""
    full: bool = tensor.numel() * tensor.element_size() == shadow.size
    return full and is_dense(tensor)


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements lie without gaps and without overlap, in any order of the dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def content(tensor: Tensor, shadow: Shadow) -> Tensor | None:
    """A CPU tensor with the values of a device tensor; it shares memory with the shadow. None: unknown."""
    if tensor.is_conj() or tensor.is_neg() or shadow.size > MOST_DERIVED * tensor.element_size():
        return None
    if shadow.data is None and shadow.fill is not None:
        materialise(tensor, shadow)
    return None if shadow.data is None else placed(tensor, shadow.data)


def placed(tensor: Tensor, data: Any) -> Tensor:
    """The part of `data` that `tensor` is of its own storage."""
    empty = torch.empty(0, dtype=tensor.dtype, device="cpu")
    return empty.set_(data, tensor.storage_offset(), tensor.size(), tensor.stride())


def materialise(tensor: Tensor, shadow: Shadow) -> None:
    """Gives a shadow bytes of its own: those of its fill, or zeros."""
    count = shadow.size // tensor.element_size()
    flat = torch.full((count,), shadow.fill or 0, dtype=tensor.dtype, device="cpu")
    shadow.data = flat.untyped_storage()
    if shadow.data.nbytes() < shadow.size:
        shadow.data.resize_(shadow.size)
    shadow.fill = None


def store(tensor: Tensor, shadow: Shadow, values: Any, guess: str | None) -> None:
    """Makes `values`, a CPU tensor or a number for all elements, the content of a device tensor that fills its storage."""
    shadow.forget()
    if isinstance(values, torch.Tensor):
        if tensor.numel() > MOST_DERIVED or values.shape != tensor.shape:
            return
        materialise(tensor, shadow)
        if shadow.data is not None:
            placed(tensor, shadow.data).copy_(values)
    else:
        shadow.fill = values
    shadow.guess = guess
