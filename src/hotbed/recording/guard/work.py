"""When the program last used the GPU, as far as its allocations tell; and what to do once it rests."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from hotbed.recording.guard.levels import Levels, less

if TYPE_CHECKING:
    from collections.abc import Callable

_TICK_S = 1.0


class Work:
    """Looks at the allocation counters every second, or more often where `idle` is short; on a thread of its own.

    `rests` is called once each time that nothing has been allocated for `idle` seconds.
    """

    def __init__(self, read: Callable[[], Levels], idle: float, rests: Callable[[], None]) -> None:
        self._read, self._idle, self._rests = read, idle, rests
        self._owner = os.getpid()
        self._last: Levels = {}
        self._at = time.monotonic()
        self._told = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hotbed guard", daemon=True)
        self._thread.start()

    def idle_s(self) -> float:
        """Seconds since memory was last asked for; a look of now included."""
        self._look()
        return time.monotonic() - self._at

    def stop(self) -> None:
        """Ends the thread; a second call does nothing."""
        self._stop.set()
        if self._thread is not threading.current_thread() and os.getpid() == self._owner:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(min(_TICK_S, self._idle / 4)):
            self._look()
            if time.monotonic() - self._at >= self._idle and not self._told:
                self._told = True
                self._rests()

    def _look(self) -> None:
        now = self._read()
        if less(now, self._last, "allocations"):
            self._at, self._told = time.monotonic(), False
        self._last = now
