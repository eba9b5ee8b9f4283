"""A program that `hotbed record` started: records it to its own end, which stays as it would have been."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed.recording.beginning import attach
from hotbed.recording.current import make_current
from hotbed.recording.ending import (
    INTERRUPTED_CODE,
    OUR_FOLDER,
    exit_code,
    leave_at_once,
    run_to_end,
    show,
)
from hotbed.recording.following import EnoughError
from hotbed.recording.guard.api import guard_as_asked
from hotbed.recording.recorder import Options, Recorder
from hotbed.recording.schedule import Plan

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import FrameType

_SWALLOWED = 3
"""A program may catch even EnoughError and go on; after so many times it is ended without asking."""


def record(job: dict[str, Any], _folder: Path, _borrowed: AbstractContextManager[None]) -> int:
    """Runs the program of `job` and records it into job["path"]. Returns the exit status."""
    ender = _Ender()
    options = Options(Plan(**job["plan"]), job["steps"], ender.enough, {"rank": job["rank"]})
    ender.recorder = Recorder(Path(job["path"]), options)
    make_current(ender.recorder)
    _before_exit(ender.recorder)
    _on_sigterm(ender.recorder)
    attach(ender.recorder)
    guard_as_asked()
    return _run(job, ender.recorder)


def _run(job: dict[str, Any], recorder: Recorder) -> int:
    try:
        stop = run_to_end(job)
    except EnoughError:
        return 0
    except BaseException as error:  # noqa: BLE001 - whatever it is, the user must see it as python shows it
        recorder.raised(error)
        recorder.stop()
        show(error)
        return INTERRUPTED_CODE if isinstance(error, KeyboardInterrupt) else 1
    code = exit_code(stop)
    recorder.stop()
    return code


class _Ender:
    """Ends the program once it has made the steps that were asked for."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self._stops = 0

    def enough(self) -> None:
        """Raises EnoughError into the program."""
        assert self.recorder is not None
        # Before the program unwinds: what it does then is none of its training.
        self.recorder.stop()
        self._stops += 1
        if self._stops > _SWALLOWED or threading.current_thread() is not threading.main_thread():
            leave_at_once(0)
        raise EnoughError


def _before_exit(recorder: Recorder) -> None:
    """Has the file closed when the program leaves by os._exit."""
    leave_now = os._exit

    @functools.wraps(leave_now)
    def _exit(status: int) -> None:
        if not sys._getframe(1).f_code.co_filename.startswith(OUR_FOLDER):
            recorder.stop()
        leave_now(status)

    os._exit = _exit  # type: ignore[assignment]


def _on_sigterm(recorder: Recorder) -> None:
    """Has the file closed before a SIGTERM ends the program; one that handles it by itself replaces this."""

    def close(number: int, _frame: FrameType | None) -> None:
        recorder.stop()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, close)
