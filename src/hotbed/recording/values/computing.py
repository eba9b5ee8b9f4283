"""Brings the shadows up to date with one call: by running it on the CPU, by what uniform tensors give, or by a guess."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .guesses import COUNTED, FROM_RANDOM, MOST_DRAWN, NOISE, RANDOM, generator, guess, noise
from .operations import tensors_in
from .shadows import MOST_DERIVED, content, covers, materialise, small, store
from .torch_there import Tensor, torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from .operations import Call
    from .shadows import Shadows

_UNWRITTEN = frozenset({"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "resize_"})
"""Their results hold whatever lay there, and custom kernels write to them unseen."""

_OVERWRITES = frozenset(
    {"fill_", "zero_", "copy_", "uniform_", "normal_", "random_", "exponential_", "bernoulli_"}
)

_MOVES = frozenset({"_to_copy", "copy_", "clone", "cat", "stack", "index", "index_select", "gather"})
"""Their results are elements of what they are given."""

_COUNTS = frozenset({"bincount", "cumsum", "histc", "scatter_add", "scatter_add_", "sum"})
"""Where these make several numbers of guessed ones, e.g. the tokens of each expert, programs cut tensors by them."""

_UNIFORM: dict[str, tuple[int, float]] = {
    "zeros": (-1, 0),
    "zeros_like": (-1, 0),
    "new_zeros": (-1, 0),
    "zero_": (-1, 0),
    "ones": (-1, 1),
    "ones_like": (-1, 1),
    "new_ones": (-1, 1),
    "full": (1, 0),
    "full_like": (1, 0),
    "new_full": (2, 0),
    "fill_": (1, 0),
}
"""Where these take the value of all elements from: the place of an argument, or -1 and the value."""

_FOLDS = frozenset({"all", "any", "max", "min", "amax", "amin", "mean"})
"""Of elements that are all alike, these give one of them."""

_SCALER_CHECK = "_amp_foreach_non_finite_check_and_unscale_"
"""Writes whether it found an infinite value: none, as it was."""


class UnknownError(Exception):
    """The arguments do not say what comes out."""


class Computer:
    """Follows calls on the shadows."""

    def __init__(self, shadows: Shadows, seed: int) -> None:
        self._shadows = shadows
        self._seed = seed

    def follow(self, call: Call) -> None:
        """Updates the shadows of what `call` returned and changed. Never fails: what cannot be followed is unknown."""
        operation = call.operation
        if operation.base in _UNWRITTEN:
            return
        try:
            self._compute(call)
        except UnknownError:
            if operation.base != _SCALER_CHECK:
                self.forget(call.written)
            self._guess(call)
        except Exception:  # noqa: BLE001  (an operation without a CPU kernel, or one that rejects a guess)
            self.forget(call.written)
        for tensor in call.outs + call.written:
            self._shadows.watch(tensor)

    def forget(self, tensors: list[Tensor]) -> None:
        """Their content is unknown from here on."""
        for tensor in tensors:
            self._shadows.of(tensor).forget()

    def _compute(self, call: Call) -> None:
        if call.reading is not None and call.reading.results is not None:
            for (tensor, shadow), values in zip(call.stored(), call.reading.results, strict=False):
                if values is not None:
                    store(tensor, shadow, values, call.reading.answer)
            return
        words = self._words(call)
        for way in self._ways(call):
            try:
                way(call, words)
            except UnknownError:
                continue
            return
        raise UnknownError

    def _ways(self, call: Call) -> list[Callable[[Call, str | None], None]]:
        """How to come to the results, the cheapest first."""
        big_results = not all(map(small, call.outs)) or not all(map(small, call.written))
        big_inputs = not all(map(small, call.inputs))
        ways = [self._uniform] if big_results or call.operation.base in _UNIFORM else []
        if big_inputs and not big_results:
            ways.append(self._fold)
        if call.operation.base == "where" and len(call.args) == 3:
            ways.append(self._pick)
        return [*ways, self._derive if big_inputs or big_results else self._run]

    def _pick(self, call: Call, words: str | None) -> None:
        """`where` that takes one side only; nothing need be known of the other."""
        condition = self._moved(call.args[0])
        if bool(condition.any()) != bool(condition.all()):
            raise UnknownError
        values = self._moved(call.args[1 if condition.any() else 2])
        for tensor, shadow in call.stored():
            store(tensor, shadow, values.expand(tensor.shape), words)

    def _derive(self, call: Call, words: str | None) -> None:
        """Large tensors that are computed from known ones; content that comes from the host is no such tensor."""
        operation = call.operation
        if not operation.cheap or operation.random:
            raise UnknownError
        if operation.base in ("_to_copy", "copy_") and len(call.inputs) < 1 + (operation.base == "copy_"):
            raise UnknownError
        if any(tensor.numel() > MOST_DERIVED for tensor in call.outs + call.inputs):
            raise UnknownError
        self._run(call, words)

    def _words(self, call: Call) -> str | None:
        """The guess that the results will rest on."""
        if call.operation.base in _UNIFORM:
            return None
        overwritten = call.written if call.operation.base in _OVERWRITES else []
        for tensor in call.inputs:
            words = self._shadows.of(tensor).guess
            if words is not None and not any(tensor is other for other in overwritten):
                return _after(call, words)
        return RANDOM if call.operation.random else None

    def _run(self, call: Call, words: str | None) -> None:
        if call.operation.base in _OVERWRITES:
            for tensor in call.written:
                shadow = self._shadows.of(tensor)
                if covers(tensor, shadow):
                    shadow.forget()
                    materialise(tensor, shadow)
        if any(shadow.data is None and shadow.fill is None for shadow in map(self._shadows.of, call.inputs)):
            raise UnknownError
        results = tensors_in(self._on_cpu(call), [])
        for tensor in call.written:
            self._shadows.of(tensor).guess = words
        for place, shadow in call.fresh.items():
            if place < len(results):
                store(call.outs[place], shadow, results[place], words)

    def _on_cpu(self, call: Call) -> Any:
        args = self._moved(call.args)
        kwargs = {key: self._moved(value) for key, value in call.kwargs.items() if key != "pin_memory"}
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        if not call.operation.random:
            return call.func(*args, **kwargs)
        kwargs.pop("generator", None)
        state = torch.default_generator.get_state()
        try:
            torch.default_generator.manual_seed(generator(call.lineage, self._seed).initial_seed())
            return call.func(*args, **kwargs)
        finally:
            torch.default_generator.set_state(state)

    def _moved(self, value: Any) -> Any:
        """An argument with CPU tensors in place of device tensors."""
        if isinstance(value, torch.Tensor):
            if not value.is_cuda:
                return value
            values = content(value, self._shadows.of(value))
            if values is None:
                raise UnknownError
            return values
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._moved, value))
        return value

    def _uniform(self, call: Call, words: str | None) -> None:
        """Large tensors whose elements are all alike."""
        if call.operation.base in _UNIFORM:
            place, value = _UNIFORM[call.operation.base]
            value = call.args[place] if place > 0 else value
        elif call.operation.pointwise:
            value = call.func(*map(self._single, call.args), **call.kwargs).item()
        else:
            raise UnknownError
        if not isinstance(value, (bool, int, float)):
            raise UnknownError
        for tensor in call.written:
            if not covers(tensor, self._shadows.of(tensor)):
                raise UnknownError
            store(tensor, self._shadows.of(tensor), value, words)
        for tensor, shadow in call.stored():
            store(tensor, shadow, value, words)

    def _single(self, value: Any) -> Any:
        """One element in place of a tensor whose elements are all alike."""
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_cuda and value.numel() == 1:
            return value.reshape(())
        shadow = self._shadows.of(value) if value.is_cuda else None
        if shadow is None or shadow.fill is None:
            raise UnknownError
        return torch.full((), shadow.fill, dtype=value.dtype, device="cpu")

    def _fold(self, call: Call, words: str | None) -> None:
        """A reduction of a large tensor whose elements are all alike."""
        fill = self._shadows.of(call.inputs[0]).fill
        if fill is None or len(call.inputs) != 1 or not call.fresh:
            raise UnknownError
        (tensor, shadow), *_ = call.stored()
        if call.operation.base in _FOLDS:
            store(tensor, shadow, fill, words)
        elif call.operation.base == "sum":
            store(tensor, shadow, fill * (call.inputs[0].numel() // max(1, tensor.numel())), words)
        else:
            raise UnknownError

    def _about(self, call: Call) -> bool:
        """Takes an unknown tensor for noise about a known one of the size of the result: boxes about their anchors."""
        if not call.operation.pointwise or call.written or len(call.inputs) != 2 or len(call.outs) != 1:
            return False
        out, pair = call.outs[0], [(tensor, self._shadows.of(tensor)) for tensor in call.inputs]
        known = [tensor for tensor, shadow in pair if shadow.data is not None]
        unknown = [tensor for tensor, shadow in pair if shadow.data is None and shadow.fill is None]
        if len(known) != 1 or len(unknown) != 1 or not all(t.is_floating_point() for t in call.inputs):
            return False
        if known[0].numel() != out.numel() or out.numel() > MOST_DRAWN:
            return False
        drawn = noise(unknown[0], generator(call.lineage, self._seed))
        values = [drawn if argument is unknown[0] else self._moved(argument) for argument in call.args]
        ((tensor, shadow),) = call.stored()
        store(tensor, shadow, call.func(*values, **call.kwargs), NOISE)
        return True

    def _guess(self, call: Call) -> None:
        fresh = call.stored()
        if not fresh or self._about(call):
            return
        source = generator(call.lineage, self._seed)
        try:
            guessed = guess(call.operation.name, call.args, call.kwargs, call.outs, source)
        except Exception:  # noqa: BLE001  (arguments that the rule did not foresee)
            return
        if guessed is None:
            return
        for place, shadow in call.fresh.items():
            values = guessed.results[place] if place < len(guessed.results) else None
            if values is not None:
                store(call.outs[place], shadow, values, guessed.answer)


def _after(call: Call, words: str) -> str:
    """The guess that the results of `call` rest on, which was given something that rests on `words`."""
    operation = call.operation
    results = call.outs or call.written
    if operation.base in _COUNTS and results and results[0].numel() > 1:
        whole = not results[0].is_floating_point() or operation.base == "histc"
        return COUNTED if whole else words
    return FROM_RANDOM if words == RANDOM and operation.base not in _MOVES else words
