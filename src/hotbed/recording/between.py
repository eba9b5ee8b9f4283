"""Has the main thread do something between two of its byte codes: what looks at a program must not run beside it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_kept: list[object] = []
"""Python may call back after whoever asked is gone."""


class Between:
    """Calls `act`, which raises nothing, on the main thread soon after ask(), or when that next runs Python code."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._asked = False
        self._native = _CALLBACK(self._called)
        _kept.append(self._native)

    def ask(self) -> None:
        """From any thread; one call is under way at most."""
        if not self._asked:
            self._asked = ctypes.pythonapi.Py_AddPendingCall(self._native, None) == 0

    def _called(self, _nothing: int | None) -> int:
        self._act()
        self._asked = False
        return 0
