"""One recorded run of a program: starts it, follows it, ends it, and has the report written."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib
import os
import sys
import threading
import time
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hotbed.recording.arrival import when_torch_arrives
from hotbed.recording.first_use import at_first_use
from hotbed.recording.following import EnoughError, Follower
from hotbed.recording.history import History
from hotbed.recording.launching import OUR_FILES, launch
from hotbed.recording.limits import INTERRUPTED, Watch
from hotbed.recording.open_files import flush_all
from hotbed.recording.report import write_report
from hotbed.recording.until import watch_output

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path
# A program may catch even EnoughError and go on; after so many times it is ended without asking.
_SWALLOWED = 3
_INTERRUPTED_CODE = 130
_OUR_FOLDER = f"{os.path.dirname(__file__)}{os.sep}"  # noqa: PTH120 - as code objects name it


def record(job: dict[str, Any], folder: Path, control: Any, borrowed: AbstractContextManager[None]) -> int:
    """Runs the program of `job` and writes report.json and snapshot.pickle into `folder`. Returns the exit status.

    `control` is the module hotbed.phantom.control; within `borrowed` more of hotbed can be imported.
    """
    session = Session(job, folder, control.Control(), borrowed)
    session.watch.resume()
    _before_exit(session)
    when_torch_arrives(session.torch_arrived)
    if job["until"] is not None:
        watch_output(job["until"], session.found_text)
    return session.run()


class Session:
    """What is known of the run, until it is written."""

    def __init__(
        self, job: dict[str, Any], folder: Path, control: Any, borrowed: AbstractContextManager[None]
    ) -> None:
        self.job, self.folder, self.control = job, folder, control
        self._borrowed = borrowed
        self._values: Any = None
        self.torch: Any = None
        self.history: History | None = None
        self.follower: Follower | None = None
        self.watch = Watch(job["orders"], job["time_limit_s"], job["host_limit_bytes"], self.out_of_limits)
        self._owner, self._forked = os.getpid(), False
        self._lock = threading.Lock()
        self._written = False
        self._stops = 0
        self.begun_us = time.time_ns() // 1000
        self.host_peak_bytes = 0
        """most resident memory of the process that this one was forked from"""

    def torch_arrived(self, torch: Any) -> None:
        """Prepares everything; the program has not used torch yet."""
        self.torch = torch
        if torch.version.cuda is None or os.getpid() != self._owner:
            return
        self._begin_values("begin")
        self._ours("weights").draw_less(torch, self.control)
        self.history = History(torch, stacks=self.job["stacks"])
        self.follower = Follower(torch, self.history, self.job["steps"], self._enough_steps)
        forking = self._ours("checkpoint").Forking(self) if self.job["shown"] is not None else None
        at_first_use(torch, functools.partial(self._first_use, forking))

    def _first_use(self, forking: Callable[[], None] | None) -> None:
        """The program is about to use CUDA."""
        if os.getpid() != self._owner:
            return
        if forking is not None:
            forking()
        assert self.history is not None
        self.history.start()

    def _ours(self, module: str) -> Any:
        with self._borrowed:
            return importlib.import_module(f"hotbed.recording.{module}")

    def _begin_values(self, how: str) -> None:
        """What this pass does about values that the program reads; in the mode "policy" nothing.

        `how` is "begin", or "switch" in a forked child.
        """
        job = self.job
        if job["mode"] == "policy":
            return
        begin = getattr(self._ours("values"), how)
        with self._borrowed:
            self._values = begin(
                job["mode"],
                control=self.control,
                folder=job["values"],
                seed=job["seed"],
                draw=job["draw"],
            )
            self._values.__enter__()

    def adopt(self, job: dict[str, Any], folder: Path, *, waited_us: int, host_peak_bytes: int) -> None:
        """Makes this process, a forked child, the pass that `job` describes and that writes into `folder`.

        Its parent needed `host_peak_bytes` so far, and has waited for other passes since.
        """
        self._owner, self._forked = os.getpid(), True
        self.job, self.folder = job, folder
        # Its contexts and those of its children are noted here from now on.
        os.environ[self.job["users"]] = str(folder)
        self.begun_us += waited_us
        self.host_peak_bytes = host_peak_bytes
        assert self.follower is not None
        self.follower.adopt()
        # What the phantom was told about reads did not come along.
        self._values = None
        self._begin_values("switch")

    def reads(self) -> list[dict[str, Any]]:
        """Rows of hotbed.predicting.script_run.Read; also writes what the next pass needs."""
        if self._values is None:
            return []
        rows: list[dict[str, Any]] = self._values.finish()
        return rows

    def run(self) -> int:
        """Until the program's own end or ours."""
        try:
            stop = self._own_end()
        except EnoughError:
            return 0
        except KeyboardInterrupt as error:
            if not (self.folder.parent / INTERRUPTED).exists():
                return self._failed(error, _INTERRUPTED_CODE)
            self.finish("interrupted")
            return _INTERRUPTED_CODE
        except BaseException as error:  # noqa: BLE001 - whatever it is, the user must see it as python shows it
            return self._failed(error)
        code = _exit_code(stop)
        self.finish("end", exit_code=code, error=stop if code else None)
        return code

    def _own_end(self) -> SystemExit:
        """Runs the program, and what goes on after it in threads that are no daemons. Returns what it ended with."""
        end = SystemExit()
        try:
            launch(self.job)
        except SystemExit as stop:
            end = stop
        threading._shutdown()  # type: ignore[attr-defined]
        return end

    def finish(
        self, ending: str, *, exit_code: int | None = None, error: BaseException | None = None
    ) -> bool:
        """Writes the report, once; False if it was there already."""
        with self._lock:
            if self._written or os.getpid() != self._owner:
                return False
            self._written = True
            write_report(self, ending, exit_code, None if error is None else _described(error))
        if self._forked and self.job["mode"] == "learn":
            # What the program would clean up is still needed: the next pass goes on from the same checkpoint.
            _leave(0)
        return True

    def out_of_limits(self, ending: str) -> None:
        """Called on the watching thread: writes what is known and ends the process."""
        if self.finish(ending):
            _leave(0)

    def found_text(self) -> None:
        """The awaited text was written to stdout."""
        self.finish("until")
        if threading.current_thread() is threading.main_thread():
            raise EnoughError
        main = ctypes.c_ulong(threading.main_thread().ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(EnoughError))

    def _enough_steps(self) -> None:
        # Before the program unwinds: what it does then is none of its training.
        self.finish("steps")
        self._stops += 1
        if self._stops > _SWALLOWED or threading.current_thread() is not threading.main_thread():
            _leave(0)
        raise EnoughError

    def _failed(self, error: BaseException, code: int = 1) -> int:
        memory = getattr(self.torch, "OutOfMemoryError", ())
        self.finish("out_of_memory" if isinstance(error, memory) else "error", exit_code=code, error=error)
        own = _own(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(own), own)
        return code


def _before_exit(session: Session) -> None:
    """Has the report written when the program leaves by os._exit; hotbed's own modules leave as they always did."""
    leave_now = os._exit

    @functools.wraps(leave_now)
    def _exit(status: int) -> None:
        if not sys._getframe(1).f_code.co_filename.startswith(_OUR_FOLDER):
            session.finish("end", exit_code=status)
        leave_now(status)

    os._exit = _exit  # type: ignore[assignment]


def _described(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    own = _own(error.__traceback__)
    return {
        "type": kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error),
        "traceback": "".join(traceback.format_exception(kind, error, own)),
    }


def _own(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames that led into the program, and without ours between it and torch."""
    while trace is not None and trace.tb_frame.f_code.co_filename in {*OUR_FILES, __file__}:
        trace = trace.tb_next
    parts = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OUR_FOLDER):
            parts.append(trace)
        trace = trace.tb_next
    own = None
    for part in reversed(parts):
        own = TracebackType(own, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return own


def _exit_code(stop: SystemExit) -> int:
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
    _leave(status)


def _leave(status: int) -> None:
    """Ends the process at once, with what it printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)
