"""What unknown values are taken for: results of operations on unknown tensors, and reads of them.

Every choice keeps a program going: numbers are 1 (so that logarithms and divisions work), conditions are False, checks
for NaN and infinity pass, indices are valid, a mask selects half of its elements.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .torch_there import Tensor, torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_MOST_SHUFFLED = 1 << 18
"""elements"""


_MOST_SCORES, MOST_DRAWN = 1 << 16, 1 << 21
"""elements"""

_VOCABULARY = 1 << 10
"""Fewer choices than these are no words but experts, classes or beams, all of which must occur."""

NOISE = "the output of a model is noise about 0"
"""What models give that have their first, random weights; what they add to a known value moves it a little."""

_NOISE_DEVIATION = 0.1

_COMMON = (0.001, 0.2)
"""Share of the variance of scores that all rows of a batch have in common, least and most: some experts or classes are
liked better by all. Measured on an H200 in the first steps of five routed models, see docs/internals/values.md."""

_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, less their whole parts, lie evenly in [0, 1) however many there are."""

_ROWS_DRAWN = 1 << 12
"""rows of scores that are drawn for choices of more rows"""

ONE_EACH = "one element of each row is equal"

RANDOM, FROM_RANDOM = "random values", "computed from random values"

INDEX, COUNTED = "random index below ", "counts of guessed choices"


class Guess(NamedTuple):
    """For each result in turn a CPU tensor, a number for all elements or None; and the guess in words."""

    results: tuple[Any, ...]
    answer: str


@cache
def _source_class() -> Any:
    """A class of torch's, so it is made once torch is there."""

    class Source(torch.Generator):  # type: ignore[misc]
        common: float
        """share of the variance of scores that all rows have in common"""

    return Source


def generator(lineage: int, seed: int) -> Any:
    """Draws the same for what was computed in the same way: a checkpoint that is recomputed must agree with itself.

    How uneven choices are is a trait of the model, so the seed decides; seeds in a row spread over what was measured.
    """
    source = _source_class()()
    source.manual_seed(hash((lineage, seed)) & (1 << 62) - 1)
    least, most = _COMMON
    source.common = least * (most / least) ** (seed * _GOLDEN % 1)
    return source


def read_answer(dtype: Any) -> tuple[bool | int | float, str]:
    """The value that an unknown element reads as, and its words."""
    if dtype == torch.bool:
        return False, "False"
    return (1.0, "1.0") if dtype.is_floating_point or dtype.is_complex else (1, "1")


def half(count: int) -> int:
    """How many of `count` elements an unknown mask selects: never none of some."""
    return (count + 1) // 2


def chosen_half(count: int, source: Any) -> Tensor:
    """Sorted indices of half of `count` elements."""
    return torch.randperm(count, generator=source, device="cpu")[: half(count)].sort().values


def scores(rows: Sequence[int], choices: int, source: Any) -> Tensor:
    """What a model of random weights gives for each of `choices`: noise, of which a part is common to all rows."""
    own = torch.randn((*rows, choices), generator=source, device="cpu")
    if math.prod(rows) < 2 or choices >= _VOCABULARY:
        return own
    common = torch.randn(choices, generator=source, device="cpu")
    return own.mul_(math.sqrt(1 - source.common)).add_(common, alpha=math.sqrt(source.common))


def distinct(shape: Sequence[int], below: int, source: Any) -> Tensor:
    """Indices below `below`, different along the last dimension of `shape`, in random order."""
    *rows, count = shape
    if below * math.prod(rows) <= _MOST_SHUFFLED:
        return scores(rows, below, source).argsort(-1)[..., :count]
    if below < _VOCABULARY:
        some = scores((_ROWS_DRAWN,), below, source).argsort(-1)[:, :count]
        return some[torch.randint(_ROWS_DRAWN, tuple(rows), generator=source, device="cpu")]
    # Too many to shuffle: evenly spread from a random start.
    start = torch.randint(below, (*rows, 1), generator=source, device="cpu")
    return (start + torch.arange(count, device="cpu") * (below // max(1, count))) % below


def _index_along(dim: int | None, tensor: Tensor) -> int:
    size: int = tensor.numel() if dim is None or not tensor.dim() else tensor.shape[dim]
    return max(1, size)


def _words(below: int) -> str:
    return f"{INDEX}{below}"


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str, default: Any) -> Any:
    return args[place] if len(args) > place else kwargs.get(name, default)


def _indices(shape: Sequence[int], below: int, source: Any) -> Tensor:
    """Random indices. Of a vocabulary, words from its middle: those at its ends may end a text before its time."""
    if below < _VOCABULARY and math.prod(shape) > 1:
        some = scores((_ROWS_DRAWN,), below, source).argmax(-1)
        return some[torch.randint(_ROWS_DRAWN, tuple(shape), generator=source, device="cpu")]
    edge = below // 4 if below >= _VOCABULARY else 0
    return torch.randint(edge, below - edge, tuple(shape), generator=source, device="cpu")


def _arg_extreme(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess:
    below = _index_along(_argument(args, kwargs, 1, "dim", None), args[0])
    return Guess((_indices(outs[0].shape, below, source),), _words(below))


def _values_and_index(place: int) -> Callable[..., Guess]:
    def guess(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess:
        below = _index_along(_argument(args, kwargs, place, "dim", -1), args[0])
        return Guess((None, _indices(outs[1].shape, below, source)), _words(below))

    return guess


def _ordered(place: int) -> Callable[..., Guess]:
    def guess(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess:
        dim, index = _argument(args, kwargs, place, "dim", -1), outs[1]
        below = _index_along(dim, args[0])
        if not index.dim() or not isinstance(dim, int):
            return Guess((None, torch.zeros_like(index, device="cpu")), _words(below))
        shape = list(torch.empty(index.shape, device="meta").movedim(dim, -1).shape)
        return Guess((None, distinct(shape, below, source).movedim(-1, dim)), _words(below))

    return guess


def _multinomial(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess:
    below = args[0].shape[-1]
    if _argument(args, kwargs, 2, "replacement", False):
        return Guess((_indices(outs[0].shape, below, source),), _words(below))
    return Guess((distinct(outs[0].shape, below, source),), _words(below))


def _count(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess | None:
    if args[0].dtype != torch.bool:
        return None
    each = args[0].numel() // max(1, outs[0].numel())
    return Guess((half(each),), f"half of {each} elements")


def _finite(value: bool) -> Callable[..., Guess]:
    def guess(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess:
        return Guess((value,), "no value is NaN or infinite")

    return guess


def _compare(value: bool) -> Callable[..., Guess | None]:
    """`x == inf` and `x == x` are how torch asks whether a number is finite; `value` answers the second."""

    def guess(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess | None:
        other = args[1]
        if isinstance(other, float) and math.isinf(other):
            return Guess((not value,), "no value is NaN or infinite")
        if isinstance(other, torch.Tensor) and (other is args[0] or _same(other, args[0])):
            return Guess((value,), "no value is NaN or infinite")
        return None

    return guess


def _compare_tensors(value: bool) -> Callable[..., Guess | None]:
    """Two unknown numbers are never equal, but for the one that was sought, e.g. the largest of its row."""
    finite = _compare(value)

    def guess(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess | None:
        floating = all(isinstance(side, torch.Tensor) and side.is_floating_point() for side in args[:2])
        return finite(args, kwargs, outs, source) or (Guess((not value,), ONE_EACH) if floating else None)

    return guess


def noise(tensor: Tensor, source: Any) -> Tensor:
    """A CPU tensor to take an unknown one for, where it is added to known values or multiplied with them."""
    drawn = torch.randn(tensor.shape, generator=source, device="cpu")
    return drawn.mul_(_NOISE_DEVIATION).to(tensor.dtype)


def _of_noise(call: Callable[..., Tensor], most: int) -> Callable[..., Guess | None]:
    def guess(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess | None:
        if outs[0].numel() > most or not outs[0].is_floating_point():
            return None
        drawn = torch.randn(args[0].shape, generator=source, device="cpu")
        return Guess((call(drawn, *args[1:2]),), NOISE)

    return guess


def _softmax(args: Any, kwargs: Any, outs: Any, source: Any) -> Guess | None:
    if outs[0].numel() > _MOST_SCORES or not outs[0].is_floating_point() or not outs[0].dim():
        return None
    *rows, choices = torch.empty(outs[0].shape, device="meta").movedim(args[1], -1).shape
    return Guess((scores(rows, choices, source).softmax(-1).movedim(-1, args[1]),), NOISE)


def _same(a: Tensor, b: Tensor) -> bool:
    return bool(a.data_ptr() == b.data_ptr() and a.stride() == b.stride() and a.shape == b.shape)


_RULES: dict[str, Callable[..., Guess | None]] = {
    "aten::argmax": _arg_extreme,
    "aten::argmin": _arg_extreme,
    "aten::max.dim": _values_and_index(1),
    "aten::min.dim": _values_and_index(1),
    "aten::median.dim": _values_and_index(1),
    "aten::nanmedian.dim": _values_and_index(1),
    "aten::mode": _values_and_index(1),
    "aten::kthvalue": _values_and_index(2),
    "aten::topk": _ordered(2),
    "aten::sort": _ordered(1),
    "aten::sort.stable": _ordered(2),
    "aten::multinomial": _multinomial,
    "aten::sum": _count,
    "aten::sum.dim_IntList": _count,
    "aten::isnan": _finite(False),
    "aten::sigmoid": _of_noise(lambda drawn: drawn.sigmoid(), _MOST_SCORES),
    "aten::_softmax": _softmax,
    "aten::exp": _of_noise(lambda drawn: drawn.mul(_NOISE_DEVIATION).exp(), MOST_DRAWN),
    "aten::eq.Scalar": _compare(True),
    "aten::eq.Tensor": _compare_tensors(True),
    "aten::ne.Scalar": _compare(False),
    "aten::ne.Tensor": _compare_tensors(False),
}


def guess(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    outs: list[Tensor],
    source: Any,
) -> Guess | None:
    """What to take the results `outs` of an operation on unknown values for; None: they are unknown too."""
    rule = _RULES.get(name)
    return rule(args, kwargs, outs, source) if rule else None
