"""Watches a recorded process from a thread of its own: time, host memory, and orders of the process that started it."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_S = 0.2
INTERRUPT = b"i"
"""order: what is known must be written now"""
INTERRUPTED = "interrupted"
"""file beside the folders of the passes that says that a SIGINT is the user's Ctrl-C, and none of the program's making"""


def resident_bytes(field: str = "VmRSS") -> int:
    """Memory of this process as /proc/self/status counts it: VmRSS now, VmHWM at most."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
    return 0


class Watch:
    """Calls `over` with "time", "host_memory" or "interrupted" on the watching thread, once. It begins paused."""

    def __init__(
        self, orders: int, seconds: float, host_limit_bytes: int | None, over: Callable[[str], None]
    ) -> None:
        self._orders, self._over = orders, over
        self._paused = time.monotonic()
        self._deadline = self._paused + seconds
        self._host_limit_bytes = host_limit_bytes
        self._thread: threading.Thread | None = None
        self._stop: tuple[int, int] | None = None

    def pause(self) -> None:
        """Ends the watching thread. The time until resume() does not count."""
        assert self._thread is not None
        assert self._stop is not None
        os.close(self._stop[1])
        self._thread.join()
        os.close(self._stop[0])
        self._paused = time.monotonic()

    def resume(self) -> None:
        """Watches on, in a forked child too."""
        self._deadline += time.monotonic() - self._paused
        self._stop = os.pipe()
        self._thread = threading.Thread(
            target=self._watch, args=(self._stop[0],), name="hotbed limits", daemon=True
        )
        self._thread.start()

    def _watch(self, stop: int) -> None:
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                return self._over("time")
            ready, _, _ = select.select([self._orders, stop], [], [], min(left, _LOOK_S))
            if stop in ready:
                return None
            if ready:
                if os.read(self._orders, 1) != INTERRUPT:
                    # The process that wanted to know is gone.
                    os._exit(1)
                return self._over("interrupted")
            if self._host_limit_bytes is not None and resident_bytes() > self._host_limit_bytes:
                return self._over("host_memory")
