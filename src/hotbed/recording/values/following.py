"""The dispatch mode that follows small tensors on the CPU while a program runs on the phantom."""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from .agreeing import agreeing
from .computing import Computer
from .lengths import lengths_on_host
from .operations import Call, Operation, device_tensors, written_by
from .reading import Reader, Reading
from .shadows import Shadows, store
from .torch_there import Tensor, torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .log import ReadLog
    from .phantom import Phantom


class Follower:
    """Sees every operation of every thread: hands the phantom its answers and keeps the shadows up to date."""

    def __init__(self, control: Phantom, log: ReadLog, seed: int) -> None:
        self._control = control
        self._log = log
        self._shadows = Shadows(control)
        self._reader = Reader(self._shadows, seed)
        self._computer = Computer(self._shadows, seed)
        self._operations: dict[Any, Operation] = {}
        self._arrivals = 0

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls `func` on the phantom, answers what it reads, and follows its results."""
        inputs = device_tensors(args)
        if kwargs:
            inputs += device_tensors(list(kwargs.values()))
        if not inputs and _is_cpu(kwargs.get("device")):
            return func(*args, **kwargs)
        operation = self._operations.get(func)
        if operation is None:
            operation = self._operations[func] = Operation(func)
        if operation.views:
            return self._view(operation, func, args, kwargs, inputs)
        reading = self._foresee(operation, func, args, kwargs) if operation.reads else None
        lineage = self._lineage(operation, args, inputs)
        result = self._call(operation, func, args, kwargs, reading)
        outs, written = device_tensors((result,)), written_by(operation, args, kwargs)
        if outs or written:
            fresh = self._renewed(outs, inputs, written, lineage)
            call = Call(operation, func, args, kwargs, inputs, lineage, reading, outs, fresh, written)
            self._follow(call)
        return result

    def forget(self, result: Any) -> Any:
        """Notes that nothing is known of what a higher-order operation returned."""
        for tensor in device_tensors((result,)):
            self._shadows.renew(tensor, 0)
        return result

    def agree(self, close: Tensor) -> None:
        """Takes two sides for close where that is not known for certain."""
        shadow = self._shadows.of(close)
        if shadow.guess is not None or (shadow.data is None and shadow.fill is None):
            store(close, shadow, True, "True")

    def _view(self, operation: Operation, func: Any, args: Any, kwargs: Any, inputs: Any) -> Any:
        if operation.base == "lift_fresh" and inputs:
            # torch.tensor() has just copied the content below the dispatcher, maybe to where another tensor was.
            self._shadows.look_up(self._shadows.renew(inputs[0], operation.number))
        return func(*args, **kwargs)

    def _foresee(self, operation: Operation, func: Any, args: Any, kwargs: Any) -> Reading | None:
        try:
            return self._reader.foresee(operation.name, func, args, kwargs)
        except Exception:  # noqa: BLE001  (what the CPU refuses is unknown, never an error of the program)
            return None

    def _call(self, operation: Operation, func: Any, args: Any, kwargs: Any, reading: Reading | None) -> Any:
        handed = self._control.hand_answers(reading.answers) if reading else None
        try:
            return func(*args, **kwargs)
        finally:
            if handed is not None:
                self._control.hand_answers(())
            if self._log.pending():
                if reading is None:
                    self._log.note(operation.base, "zeros")
                else:
                    self._log.note(reading.operation, reading.answer)

    def _lineage(self, operation: Operation, args: Any, inputs: list[Tensor]) -> int:
        """A number for what is about to be computed: from the operation, its tensors, numbers and random state."""
        numbers = tuple(value for value in args if type(value) is int)
        state = _random_offset() if operation.random else 0
        if operation.base in ("_to_copy", "copy_") and len(inputs) < 1 + (operation.base == "copy_"):
            # Two tensors that come from the host have nothing in common.
            self._arrivals += 1
            state = self._arrivals
        parents = tuple(self._shadows.of(tensor).lineage for tensor in inputs)
        return hash((operation.number, state, numbers, parents))

    def _renewed(
        self, outs: list[Tensor], inputs: list[Tensor], written: list[Tensor], lineage: int
    ) -> dict[int, Any]:
        """Shadows for results with a storage of their own, by their place among `outs`."""
        there = {tensor.untyped_storage()._cdata for tensor in inputs}
        for i, tensor in enumerate(written):
            self._shadows.of(tensor).lineage = hash((lineage, i, 1))
        return {
            place: self._shadows.renew(tensor, hash((lineage, place)))
            for place, tensor in enumerate(outs)
            if tensor.untyped_storage()._cdata not in there
        }

    def _follow(self, call: Call) -> None:
        if torch.cuda.is_current_stream_capturing():
            # Replays of the graph will write there again, unseen.
            self._computer.forget(call.written)
        else:
            self._computer.follow(call)


def _is_cpu(device: Any) -> bool:
    return device is None or torch.device(device).type != "cuda"


def _random_offset() -> int:
    """How far the device's random numbers have been used up: the same again when a checkpoint is recomputed."""
    try:
        offset: int = torch.cuda.default_generators[torch.cuda.current_device()].get_offset()
        return offset
    except (AttributeError, RuntimeError):
        return 0


@cache
def _unwraps(kind: type) -> bool:
    """Whether a tensor class handles operations itself. Some versions of torch name Tensor too."""
    own = kind.__mro__[: kind.__mro__.index(torch.Tensor)]
    return any("__torch_dispatch__" in vars(base) for base in own)


@cache
def _mode_class() -> Any:
    """A class of torch's, so it is made once torch is there."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Following(TorchDispatchMode):  # type: ignore[misc]
        supports_higher_order_operators = True

        def __init__(self, follower: Follower) -> None:
            super().__init__()
            self._follower = follower

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled in this pass, and the answer True imports the compiler

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(map(_unwraps, types)):
                return NotImplemented  # the parts come by here
            if not isinstance(func, torch._ops.OpOverload):
                return self._follower.forget(func(*args, **(kwargs or {})))
            return self._follower.run(func, args, kwargs or {})

    return Following


@contextmanager
def follow(control: Phantom, log: ReadLog, seed: int) -> Iterator[None]:
    """Follows this thread, those that it starts, and what torch does to print a tensor, until the block ends."""
    follower, mode = Follower(control, log, seed), _mode_class()

    def followed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with mode(follower):
                return function(*args, **kwargs)

        return call

    start, text = threading.Thread.start, torch._tensor_str._str_intern

    def start_followed(thread: threading.Thread) -> None:
        thread.run = followed(thread.run)  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_followed  # type: ignore[method-assign, assignment]
    torch._tensor_str._str_intern = followed(text)
    try:
        with mode(follower), agreeing(follower.agree), lengths_on_host():
            yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        torch._tensor_str._str_intern = text


def outlast_inference_mode() -> None:
    """Has modes go on where an inference mode ends that began before them: it puts all dispatch keys back as they were.

    To be called before the program is in any: a `with` statement looks up what ends it as it begins.
    """
    leave = torch.inference_mode.__exit__

    @functools.wraps(leave)
    def leave_and_go_on(guard: Any, *exception: Any) -> None:
        leave(guard, *exception)
        if torch._C._len_torch_dispatch_stack():
            for key in ("Python", "PythonTLSSnapshot"):
                torch._C._dispatch_tls_set_dispatch_key_included(key, True)

    torch.inference_mode.__exit__ = leave_and_go_on
