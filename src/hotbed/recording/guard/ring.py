"""The last part of torch's allocator history, with stacks: turned on where nobody else records."""

from __future__ import annotations

from typing import Any, Final

ENTRIES: Final = 20_000
"""The stacks of what is live are in the memory map; the history shows what came right before."""


class Ring:
    """On from begin() to stop(), which costs about 1 us an event. A program that records by itself takes it over."""

    def __init__(self, torch: Any) -> None:
        self._memory = torch.cuda.memory
        self._torch = torch
        self._record = self._memory._record_memory_history
        self._ours = False

    @property
    def is_on(self) -> bool:
        """Whether it is this one that is on."""
        return self._ours

    def begin(self) -> None:
        """Turns it on; does nothing where a history is kept already, or the allocator backend keeps none."""
        if self._is_on():
            return
        try:
            self._record("all", context="alloc", stacks="python", max_entries=ENTRIES)
        except RuntimeError:
            # The cudaMallocAsync backend has no history.
            return
        self._ours = True
        self._memory._record_memory_history = self._taken_over

    def _is_on(self) -> bool:
        """torch crashes where it is asked before CUDA is initialised."""
        ask = getattr(self._torch._C, "_cuda_isHistoryEnabled", None)
        return ask is not None and self._torch.cuda.is_initialized() and bool(ask())

    def _taken_over(self, *arguments: Any, **keywords: Any) -> Any:
        self._put_back()
        return self._record(*arguments, **keywords)

    def _put_back(self) -> None:
        self._ours = False
        if self._memory._record_memory_history == self._taken_over:
            self._memory._record_memory_history = self._record

    def stop(self) -> None:
        """Turns it off if it is still ours; a second call does nothing."""
        if self._ours:
            self._put_back()
            self._record(None)
