"""Counts the program's steps by its optimizers, and says when one is over."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Steps:
    """`count` is that of the optimizer that has stepped most; `over` is called after each of its steps, on its thread.

    A step within a step, as wrappers of optimizers make, is none. stop() takes the hooks out. hotbed.recording.rounds
    counts more exactly, and takes ten times as long.
    """

    def __init__(self, torch: Any, over: Callable[[int], None]) -> None:
        self._torch, self._over = torch, over
        self._owner = os.getpid()
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._running = threading.local()
        self.count = 0
        self._first = self._last = 0.0
        optim = sys.modules["torch.optim.optimizer"]
        self._hooks = [
            optim.register_optimizer_step_pre_hook(self._begins),
            optim.register_optimizer_step_post_hook(self._ends),
        ]

    @property
    def mean_s(self) -> float | None:
        """Seconds from one step to the next, on average; None before there are two."""
        return (self._last - self._first) / (self.count - 1) if self.count > 1 else None

    def stop(self) -> None:
        """Counts no longer; a second call does nothing."""
        while self._hooks:
            self._hooks.pop().remove()

    def _elsewhere(self) -> bool:
        return os.getpid() != self._owner or self._torch.compiler.is_compiling()

    def _begins(self, optimizer: Any, _arguments: Any, _keywords: Any) -> None:
        # A step that raised has not ended: the next one of the same optimizer begins anew.
        outer = getattr(self._running, "outer", None)
        if not self._elsewhere() and (outer is None or outer() in (None, optimizer)):
            self._running.outer = weakref.ref(optimizer)

    def _ends(self, optimizer: Any, _arguments: Any, _keywords: Any) -> None:
        outer = getattr(self._running, "outer", None)
        if self._elsewhere() or outer is None or outer() is not optimizer:
            return
        self._running.outer = None
        count = self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        if count > self.count:
            self.count = count
            self._last = time.perf_counter()
            self._first = self._first or self._last
            self._over(count)
