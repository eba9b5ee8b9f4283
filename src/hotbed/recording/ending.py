"""How a program comes to its end in a process that hotbed started: its status, its last words, its traceback."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import traceback
from types import TracebackType
from typing import Any

from hotbed.recording.launching import OUR_FILES, launch
from hotbed.recording.open_files import flush_all

INTERRUPTED_CODE = 130
OUR_FOLDER = f"{os.path.dirname(__file__)}{os.sep}"  # noqa: PTH120 - as code objects name it


def run_to_end(job: dict[str, Any]) -> SystemExit:
    """Runs the program, and what goes on after it in threads that are no daemons. Returns what it ended with."""
    end = SystemExit()
    try:
        launch(job)
    except SystemExit as stop:
        end = stop
    threading._shutdown()  # type: ignore[attr-defined]
    return end


def described(error: BaseException) -> dict[str, Any]:
    """type, message and traceback in words."""
    kind = type(error)
    own = own_frames(error.__traceback__)
    return {
        "type": kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error),
        "traceback": "".join(traceback.format_exception(kind, error, own)),
    }


def show(error: BaseException) -> None:
    """As Python shows it, or as the program has asked for, without hotbed's frames."""
    own = own_frames(error.__traceback__)
    sys.excepthook(type(error), error.with_traceback(own), own)


def own_frames(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames that led into the program, and without ours between it and torch."""
    while trace is not None and (
        trace.tb_frame.f_code.co_filename in OUR_FILES
        or trace.tb_frame.f_code.co_filename.startswith(OUR_FOLDER)
    ):
        trace = trace.tb_next
    parts = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(OUR_FOLDER):
            parts.append(trace)
        trace = trace.tb_next
    own = None
    for part in reversed(parts):
        own = TracebackType(own, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return own


def exit_code(stop: SystemExit) -> int:
    """As CPython ends: None is 0, a number itself, anything else is printed and 1."""
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)  # noqa: T201 - the program's own last words
    return 1


def leave(status: int) -> None:
    """Ends the process as the interpreter would, up to its teardown.

    Autograd's threads may meet that, and abort a program that is done and whose report is written.
    """
    # Its functions report their own errors.
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    flush_all()
    leave_at_once(status)


def leave_at_once(status: int) -> None:
    """Ends the process, with what it printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)
