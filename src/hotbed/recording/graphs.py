"""Steps of programs that put them into CUDA graphs: warm-up on a side stream, capture, and replays that call no hook."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WARM_UPS = 12
"""torch's manual asks for up to 11 steps before a capture"""


class GraphSteps:
    """Which steps CUDA graphs hold. `replayed` gets the numbers of the steppers of a graph that is replayed."""

    def __init__(self, torch: Any, replayed: Callable[[list[int]], None]) -> None:
        self._cuda, self._replayed = torch.cuda, replayed
        self._capturing: list[int] = []
        self._captured: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        self.warm_ups = 0
        """steps of a program that may be about to capture one"""
        graph = torch.cuda.CUDAGraph
        graph.capture_end = self._around_end(graph.capture_end)
        graph.replay = self._around_replay(graph.replay)

    def stepped(self, stepper: int) -> None:
        """The optimizer of this number has stepped, on the current stream."""
        if not self._cuda.is_initialized():
            return
        if self._cuda.is_current_stream_capturing():
            self._capturing.append(stepper)
        elif self.warm_ups < MOST_WARM_UPS and self._cuda.current_stream() != self._cuda.default_stream():
            self.warm_ups += 1

    def _around_end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def capture_end(graph: Any) -> Any:
            if self._capturing:
                self._captured[graph], self._capturing = self._capturing, []
            return original(graph)

        return capture_end

    def _around_replay(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def replay(graph: Any) -> Any:
            result = original(graph)
            steppers = self._captured.get(graph)
            if steppers:
                self._replayed(steppers)
            return result

        return replay
