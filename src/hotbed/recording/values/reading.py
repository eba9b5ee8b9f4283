"""Operations that read device values inside: what they will read, in order, and what they then return."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

from .guesses import ONE_EACH, chosen_half, generator, half, read_answer
from .shadows import content, is_dense, small
from .torch_there import Tensor, torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .shadows import Shadow, Shadows


class Reading(NamedTuple):
    """Answers for the reads of one call.

    `answer` says in words which guess they rest on, None for none. `results` are CPU tensors for what the call
    returns; None: they follow from the operation as usual.
    """

    operation: str
    answers: Sequence[bytes | int]
    answer: str | None
    results: tuple[Tensor | None, ...] | None = None


class _Known(NamedTuple):
    values: Tensor | None
    guess: str | None
    lineage: int


class Reader:
    """Foresees what each operation reads, from the shadows of its arguments."""

    def __init__(self, shadows: Shadows, seed: int) -> None:
        self._shadows = shadows
        self._seed = seed

    def foresee(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reading | None:
        """What `func` will read; None if it is not known to read at all."""
        rule = _RULES.get(name)
        return rule(self, func, args, kwargs) if rule else None

    def known(self, tensor: Tensor) -> _Known:
        """Values of an argument, where they are known; of a CPU tensor, itself."""
        if tensor.device.type != "cuda":
            return _Known(tensor, None, 0)
        shadow: Shadow = self._shadows.of(tensor)
        values = content(tensor, shadow)
        return _Known(values, shadow.guess if values is not None else None, shadow.lineage)

    def fill(self, tensor: Tensor) -> tuple[Any, str | None]:
        """The number that every element of a tensor has, or None."""
        if tensor.device.type != "cuda":
            return None, None
        shadow = self._shadows.of(tensor)
        return shadow.fill, shadow.guess

    def bytes_of(self, source: Tensor, target: Tensor | None, dtype: Any) -> tuple[Any, str | None]:
        """Answer for a copy to the host: the bytes as they cross, and the guess that they rest on."""
        values, guess, _ = self.known(source)
        if values is None:
            if not small(source):
                fill, guess = self.fill(source)
                return b"", guess if fill == 0 else "zeros"
            value, words = read_answer(source.dtype)
            values, guess = torch.full(source.shape, value, dtype=source.dtype, device="cpu"), words
        elif guess is not None:
            guess = _told(values, guess)
        return _raw(_crossing(values, target, dtype)), guess

    def mask_count(self, mask: Tensor) -> tuple[int, str | None]:
        """How many elements of a mask are set."""
        fill, guess = self.fill(mask)
        if fill is not None and guess == ONE_EACH:
            found = min(mask.numel(), mask.shape[0] if mask.dim() > 1 else 1)
            return mask.numel() - found if fill else found, guess
        values, guess, _ = self.known(mask)
        if values is not None:
            return int(values.count_nonzero()), guess
        if fill is not None:
            return mask.numel() if fill else 0, guess
        return half(mask.numel()), f"half of {mask.numel()} elements"

    def generator(self, lineage: int) -> Any:
        return generator(lineage, self._seed)


def _told(values: Tensor, guess: str) -> str:
    """What a guess has come to, where that is short."""
    return f"{values.item()} ({guess})" if values.numel() == 1 and values.dtype == torch.bool else guess


def _crossing(values: Tensor, target: Tensor | None, dtype: Any) -> Tensor:
    """Flat values in the order in which torch copies them: as they lie if both sides lie alike, else row by row."""
    alike = dtype == values.dtype and (target is None or target.stride() == values.stride())
    if alike and is_dense(values):
        return values.as_strided((values.numel(),), (1,), values.storage_offset())
    return values.to(dtype).contiguous().view(-1)


def _raw(values: Tensor) -> bytes:
    flat = values.contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""


def _item(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    answer, guess = reader.bytes_of(args[0], None, args[0].dtype)
    return Reading("item", [answer], guess)


def _to_copy(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading | None:
    device = kwargs.get("device")
    if args[0].device.type != "cuda" or device is None or torch.device(device).type != "cpu":
        return None
    dtype = kwargs.get("dtype") or args[0].dtype
    answer, guess = reader.bytes_of(args[0], None, dtype)
    return Reading("copy to host", [answer], guess)


def _copy(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading | None:
    target, source = args[0], args[1]
    if source.device.type != "cuda" or target.device.type != "cpu":
        return None
    if source.shape != target.shape:
        source = source.expand(target.shape)
    answer, guess = reader.bytes_of(source, target, target.dtype)
    return Reading("copy to host", [answer], guess)


def _foreach_copy(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading | None:
    each = [_copy(reader, func, pair, kwargs) for pair in zip(args[0], args[1], strict=True)]
    readings = [reading for reading in each if reading]
    if not readings:
        return None
    guess = next((reading.answer for reading in readings if reading.answer), None)
    return Reading("copy to host", [reading.answers[0] for reading in readings], guess)


def _nonzero(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    count, words = reader.mask_count(args[0])
    values, guess, lineage = reader.known(args[0])
    if values is not None and words == guess != ONE_EACH:
        return Reading("nonzero", [count], guess, (values.nonzero(),))
    if not small(args[0]) or count != half(args[0].numel()):
        return Reading("nonzero", [count], words, (None,))
    flat = chosen_half(args[0].numel(), reader.generator(lineage))
    place = torch.unravel_index(flat, args[0].shape) if args[0].dim() else ()
    found = torch.stack(place, 1) if place else torch.zeros((count, 0), dtype=torch.int64, device="cpu")
    return Reading("nonzero", [count], words, (found,))


def _masked_select(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    tensor, mask = args[0], args[1]
    count, guess = reader.mask_count(mask)
    if mask.shape != tensor.shape:
        shape = torch.broadcast_shapes(mask.shape, tensor.shape)
        count *= shape.numel() // max(1, mask.numel())
    return Reading("masked_select", [count], guess)


def _index(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading | None:
    masks = [index for index in args[1] if index is not None and index.dtype in (torch.bool, torch.uint8)]
    if not masks or args[0].device.type != "cuda":
        return None
    counts = [reader.mask_count(mask) for mask in masks]
    guess = next((guess for _, guess in counts if guess), None)
    answers = [count for count, _ in counts]
    values = args[2] if len(args) > 2 else None
    if (
        guess
        and len(masks) == 1
        and isinstance(values, torch.Tensor)
        and values.dim()
        and values.shape[0] > 1
    ):
        answers = [values.shape[0]]  # what is put there was counted before
    return Reading("index by a mask", answers, guess)


def _to_sparse(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    count, guess = reader.mask_count(args[0])
    return Reading("to_sparse", [count], guess)


def _unique(dim_place: int | None) -> Callable[..., Reading]:
    def reading(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
        dim = 0 if dim_place is None else args[dim_place]
        values, guess, _ = reader.known(args[0])
        if values is not None:
            results = func(values, *args[1:], **kwargs)
            return Reading("unique", [results[0].shape[dim or 0]], guess, results)
        size = args[0].numel() if dim_place is None else args[0].shape[dim]
        return Reading("unique", [half(size)], f"half of {size} elements")

    return reading


def _unique_consecutive(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    dim = args[3] if len(args) > 3 else kwargs.get("dim")
    return _unique(None if dim is None else 3)(reader, func, args, kwargs)


def _repeat_interleave(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    values, guess, _ = reader.known(args[0])
    if values is None:
        return Reading("repeat_interleave", [args[0].numel(), 1], "1 repeat each")
    return Reading("repeat_interleave", [int(values.sum()), 1], guess)


def _bincount(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading | None:
    values, guess, _ = reader.known(args[0])
    if not args[0].numel():
        return None
    least, most = 0, 0
    if values is not None:
        least, most = int(values.min()), int(values.max())
    else:
        guess = "all elements are 0"
    return Reading("bincount", [most] if args[0].dtype == torch.uint8 else [least, most], guess)


def _histc(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    values, guess, _ = reader.known(args[0])
    ends = (
        torch.tensor([0, 1], device="cpu")
        if values is None or not values.numel()
        else torch.stack(values.aminmax())
    )
    low, high = ends.to(args[0].dtype).unbind()
    return Reading("histc", [_raw(low), _raw(high)], "values from 0 to 1" if values is None else guess)


def _agreement(test: str) -> Callable[..., Reading]:
    """It asserts that two ways agree: True wherever a side is not known for certain."""

    def reading(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
        one, other = reader.known(args[0]), reader.known(args[1])
        if one.values is None or other.values is None or one.guess or other.guess:
            return Reading(test, [1], "True")
        return Reading(test, [int(func(one.values, other.values, *args[2:], **kwargs))], None)

    return reading


def _no_error(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    return Reading("check for errors", [0], "no error")


def _finite(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    # First it checks its input for infinities; then it looks whether all eigenvalues are real, and for errors.
    return Reading("check for errors", [1, 0], "finite, no error")


def _keep_all(reader: Reader, func: Any, args: Any, kwargs: Any) -> Reading:
    boxes, scores = reader.known(args[0]), reader.known(args[1])
    if boxes.values is not None and scores.values is not None:
        kept = func(boxes.values.float(), scores.values.float(), *args[2:], **kwargs)
        return Reading("nms", [len(kept)], boxes.guess or scores.guess, (kept,))
    return Reading("nms", [len(args[0])], "no box is suppressed")


_RULES: dict[str, Callable[..., Reading | None]] = {
    "aten::_local_scalar_dense": _item,
    "aten::_to_copy": _to_copy,
    "aten::copy_": _copy,
    "aten::_foreach_copy_": _foreach_copy,
    "aten::nonzero": _nonzero,
    "aten::masked_select": _masked_select,
    "aten::index.Tensor": _index,
    "aten::_unsafe_index.Tensor": _index,
    "aten::index_put_": _index,
    "aten::index_put": _index,
    "aten::_index_put_impl_": _index,
    "aten::_unsafe_index_put": _index,
    "aten::_to_sparse": _to_sparse,
    "aten::_to_sparse.sparse_dim": _to_sparse,
    "aten::_unique": _unique(None),
    "aten::_unique2": _unique(None),
    "aten::unique_dim": _unique(1),
    "aten::unique_dim_consecutive": _unique(1),
    "aten::unique_consecutive": _unique_consecutive,
    "aten::repeat_interleave.Tensor": _repeat_interleave,
    "aten::bincount": _bincount,
    "aten::histc": _histc,
    "aten::equal": _agreement("equal"),
    "aten::allclose": _agreement("allclose"),
    "aten::_linalg_check_errors": _no_error,
    "aten::linalg_eig": _finite,
    "aten::linalg_eigvals": _finite,
    "aten::_linalg_eigvals": _finite,
    "torchvision::nms": _keep_all,
}

READERS = frozenset(_RULES)
