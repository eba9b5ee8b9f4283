"""Follows a training loop through the hooks that torch has: steps, backward passes, evaluation; and ends it between steps."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotbed.recording.graphs import GraphSteps
from hotbed.recording.holdings import Finder
from hotbed.recording.rounds import PATIENCE, Rounds

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from hotbed.recording.holdings import Holdings

    class Clock(Protocol):
        """Where each device's history is; hotbed.recording.history.History is one."""

        def positions(self) -> list[Any]:
            """By device: (allocations, frees), perhaps more counters behind them, or None for one that is not used."""
            ...


class EnoughError(BaseException):
    """Ends the program from within: it has shown what was asked for. No `except Exception` catches it."""


@dataclass(frozen=True)
class Mark:
    """Something happened between two events of the history; `positions` by device, None where only the time was taken.

    `kind`: "step" (an optimizer begins, and what it steps is noted), "stepped", "by hand" (a step is over, says the program), "backward", "backward end", "eval" and "train" (a module changed
    its mode), "forward end" (a stretch without gradients is over, after "eval"), "found" (modules were looked at).
    """

    kind: str
    time_us: int
    positions: list[Any] | None


@dataclass(frozen=True)
class Note:
    """Storages that had a role at the mark of number `mark`."""

    mark: int
    device: int
    category: str
    addresses: list[int]


class Follower:
    """Collects marks and notes from the moment torch is there. `stop` is called when the wanted rounds are complete.

    Whoever takes marks and notes away through take() may do so on another thread.
    """

    def __init__(self, torch: Any, history: Clock, wanted: int | None, stop: Callable[[], None]) -> None:
        self._torch, self._history, self._wanted, self._stop = torch, history, wanted, stop
        self.active = True
        """False: nothing is followed for now"""
        self.detailed = True
        """False: no notes, and of the marks within a step the time alone"""
        self._detail_s = 0.0
        self.after_step: Callable[[], None] | None = None
        """called whenever an optimizer has stepped"""
        self._lock = threading.Lock()
        self._taken = 0
        """marks that were taken away: a mark's number is its index plus this"""
        self._finder = Finder(torch)
        self._owner = os.getpid()
        self._backwards = 0
        """backward passes under way, one within another"""
        self._passes = 0
        """outermost ones so far"""
        self._switching = False
        self._converting = False
        self._evaluating = False
        self._enough = False
        self.rounds = Rounds()
        self.trouble: str | None = None
        """why some tensors could not be looked at"""
        self.marks: list[Mark] = []
        self.notes: list[Note] = []
        self.stepped: list[tuple[int, int]] = []
        """(number of the mark, stepper) of each entry in rounds.log"""
        self._install()
        self._graphs = GraphSteps(torch, self._replayed)

    def end_after(self, wanted: int | None, stop: Callable[[], None]) -> None:
        """Has `stop` called when so many rounds are complete."""
        self._wanted, self._stop = wanted, stop

    def begin_anew(self) -> None:
        """Forgets what there was so far, and follows."""
        self._wanted, self._enough = None, False
        self.rounds = Rounds()
        self.marks, self.notes, self.stepped, self._taken = [], [], [], 0
        self.trouble = None
        self.active = self.detailed = True
        self._detail_s = 0.0

    def take(self) -> tuple[list[Mark], list[Note], list[tuple[int, int]]]:
        """The marks, notes and `stepped` so far, which are forgotten here; marks keep their numbers."""
        with self._lock:
            taken = self.marks, self.notes, self.stepped
            self.marks, self.notes, self.stepped = [], [], []
            self._taken += len(taken[0])
        return taken

    def take_seconds(self) -> float:
        """What notes, and counted marks within steps, took since the last call."""
        taken, self._detail_s = self._detail_s, 0.0
        return taken

    def adopt(self) -> None:
        """Makes this process, a forked child, the one that is followed."""
        self._owner = os.getpid()

    def look(self) -> None:
        """Notes what the modules and optimizers hold that are alive now."""
        mark = self.mark("found")
        self._look_for(mark, self._finder.modules)
        for optimizer in self._finder.optimizers():
            self._look_for(mark, self._finder.after_step, optimizer)

    def optimizers(self) -> int:
        """How many optimizers are alive: a program that has one means to train."""
        return len(self._finder.optimizers())

    def _install(self) -> None:
        optim = sys.modules["torch.optim.optimizer"]
        optim.register_optimizer_step_pre_hook(self._before_step)
        optim.register_optimizer_step_post_hook(self._after_step)
        autograd, module = self._torch.autograd, self._torch.nn.Module
        autograd._engine_run_backward = self._around_backward(autograd._engine_run_backward)
        module.train = self._around_train(module.train)
        module._apply = self._around_apply(module._apply)
        for guard in (self._torch.no_grad, self._torch.inference_mode):
            guard.__exit__ = self._after_exit(guard.__exit__)

    def _elsewhere(self) -> bool:
        """Whether nobody asks, this is a forked child, or code that torch.compile looks at."""
        return not self.active or self._torch.compiler.is_compiling() or os.getpid() != self._owner

    def mark(self, kind: str, *, counted: bool = True) -> int:
        """Marks where the program is now, or when that was alone; the number of the mark."""
        mark = Mark(kind, time.time_ns() // 1000, self._history.positions() if counted else None)
        with self._lock:
            self.marks.append(mark)
            return self._taken + len(self.marks) - 1

    def _mark_within(self, kind: str) -> int:
        """A mark within a step; its number."""
        if not self.detailed:
            return self.mark(kind, counted=False)
        begun = time.perf_counter()
        number = self.mark(kind)
        self._detail_s += time.perf_counter() - begun
        return number

    def _note(self, mark: int, find: Callable[..., Holdings], *arguments: Any) -> None:
        if self.detailed:
            begun = time.perf_counter()
            self._look_for(mark, find, *arguments)
            self._detail_s += time.perf_counter() - begun

    def _look_for(self, mark: int, find: Callable[..., Holdings], *arguments: Any) -> None:
        try:
            holdings = find(*arguments)
        except Exception as error:  # noqa: BLE001 - a tensor that is like no other must not stop the program
            self.trouble = f"some memory has no category: {type(error).__name__}: {error}"
            return
        for device, categories in holdings.items():
            for category, addresses in categories.items():
                self.notes.append(Note(mark, device, category, addresses))

    def _before_step(self, optimizer: Any, _arguments: Any, _keywords: Any) -> None:
        if self._elsewhere():
            return
        if not self.rounds.log:
            self.rounds.expect(self._finder.optimizers())
            self.look()
        self.rounds.begins(optimizer)
        if self.detailed:
            self._note(self._mark_within("step"), self._finder.before_step, optimizer)

    def _after_step(self, optimizer: Any, _arguments: Any, _keywords: Any) -> None:
        if self._elsewhere():
            return
        mark = self.mark("stepped")
        self._note(mark, self._finder.after_step, optimizer)
        if self.rounds.ends(optimizer):
            self.stepped.append((mark, self.rounds.log[-1]))
            self._graphs.stepped(self.rounds.log[-1])
            self._count()
        self._stop_if_possible()

    def _replayed(self, steppers: list[int]) -> None:
        """A CUDA graph that holds steps of these was replayed: the hooks know nothing of it."""
        mark = self.mark("stepped")
        for stepper in steppers:
            self.rounds.again(stepper)
            self.stepped.append((mark, stepper))
        self._count()
        self._stop_if_possible()

    def _count(self) -> None:
        if self.after_step is not None:
            self.after_step()
        if self._wanted is not None:
            self._enough = self.rounds.complete >= self._wanted + self._graphs.warm_ups

    def _count_pass(self) -> None:
        """A program whose steps no hook sees would run to its end: many backward passes must do."""
        self._passes += 1
        if self._wanted is not None and not self.rounds.log and not self._passes % (PATIENCE * self._wanted):
            self._enough = not self.optimizers()

    def _stop_if_possible(self) -> None:
        """Stops outside of backward passes only: within one, autograd's own threads would meet the exception."""
        if self._enough and not self._backwards:
            self._stop()

    def _around_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def engine_run_backward(*arguments: Any, **keywords: Any) -> Any:
            if self._elsewhere():
                return original(*arguments, **keywords)
            # Only the outermost: checkpointing runs backward passes within backward passes.
            if not self._backwards:
                self._mark_within("backward")
            self._backwards += 1
            try:
                result = original(*arguments, **keywords)
            finally:
                self._backwards -= 1
            if not self._backwards:
                self._mark_within("backward end")
                self._count_pass()
            self._stop_if_possible()
            return result

        return engine_run_backward

    def _around_train(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def train(module: Any, mode: bool = True) -> Any:
            # The call goes on to every child; the outermost says it all.
            if self._switching or self._elsewhere():
                return original(module, mode)
            self._switching = True
            try:
                result = original(module, mode)
            finally:
                self._switching = False
            self._evaluating = not mode
            self.mark("train" if mode else "eval")
            return result

        return train

    def _around_apply(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def apply(module: Any, *arguments: Any, **keywords: Any) -> Any:
            if self._converting or self._elsewhere():
                return original(module, *arguments, **keywords)
            self._converting = True
            # What a cast replaces is gone when modules are looked at the next time.
            self._note(self.mark("found"), self._finder.modules, module)
            try:
                return original(module, *arguments, **keywords)
            finally:
                self._converting = False

        return apply

    def _after_exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def leave(guard: Any, *exception: Any) -> Any:
            result = original(guard, *exception)
            if self._evaluating and not self._elsewhere() and self._torch.is_grad_enabled():
                if self.marks and self.marks[-1].kind == "forward end":
                    self.marks.pop()
                self.mark("forward end")
            return result

        return leave
