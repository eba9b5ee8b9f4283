"""One recorded run of a program: starts it, follows it, ends it, and has the report written."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from hotbed.recording.arrival import when_torch_arrives
from hotbed.recording.ending import (
    INTERRUPTED_CODE,
    OUR_FOLDER,
    described,
    exit_code,
    leave_at_once,
    run_to_end,
    show,
)
from hotbed.recording.first_use import at_first_use
from hotbed.recording.following import EnoughError, Follower
from hotbed.recording.history import History
from hotbed.recording.limits import INTERRUPTED, Watch
from hotbed.recording.report import write_report
from hotbed.recording.until import watch_output

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path
# A program may catch even EnoughError and go on; after so many times it is ended without asking.
_SWALLOWED = 3


def record(job: dict[str, Any], folder: Path, borrowed: AbstractContextManager[None]) -> int:
    """Runs the program of `job` and writes report.json and snapshot.pickle into `folder`. Returns the exit status.

    Within `borrowed` more of hotbed can be imported.
    """
    session = Session(job, folder, _loaded(job["control"]).Control(), borrowed)
    session.watch.resume()
    _before_exit(session)
    when_torch_arrives(session.torch_arrived)
    if job["until"] is not None:
        watch_output(job["until"], session.found_text)
    return session.run()


def _loaded(path: str) -> Any:
    """The module hotbed.phantom.control, which is at `path`, known by no name to the program."""
    spec = importlib.util.spec_from_file_location(f"_hotbed_{os.path.basename(path)}", path)  # noqa: PTH119
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while they are made.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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
            stop = run_to_end(self.job)
        except EnoughError:
            return 0
        except KeyboardInterrupt as error:
            if not (self.folder.parent / INTERRUPTED).exists():
                return self._failed(error, INTERRUPTED_CODE)
            self.finish("interrupted")
            return INTERRUPTED_CODE
        except BaseException as error:  # noqa: BLE001 - whatever it is, the user must see it as python shows it
            return self._failed(error)
        code = exit_code(stop)
        self.finish("end", exit_code=code, error=stop if code else None)
        return code

    def finish(
        self, ending: str, *, exit_code: int | None = None, error: BaseException | None = None
    ) -> bool:
        """Writes the report, once; False if it was there already."""
        with self._lock:
            if self._written or os.getpid() != self._owner:
                return False
            self._written = True
            write_report(self, ending, exit_code, None if error is None else described(error))
        if self._forked and self.job["mode"] == "learn":
            # What the program would clean up is still needed: the next pass goes on from the same checkpoint.
            leave_at_once(0)
        return True

    def out_of_limits(self, ending: str) -> None:
        """Called on the watching thread: writes what is known and ends the process."""
        if self.finish(ending):
            leave_at_once(0)

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
            leave_at_once(0)
        raise EnoughError

    def _failed(self, error: BaseException, code: int = 1) -> int:
        memory = getattr(self.torch, "OutOfMemoryError", ())
        self.finish("out_of_memory" if isinstance(error, memory) else "error", exit_code=code, error=error)
        show(error)
        return code


def _before_exit(session: Session) -> None:
    """Has the report written when the program leaves by os._exit; hotbed's own modules leave as they always did."""
    leave_now = os._exit

    @functools.wraps(leave_now)
    def _exit(status: int) -> None:
        if not sys._getframe(1).f_code.co_filename.startswith(OUR_FOLDER):
            session.finish("end", exit_code=status)
        leave_now(status)

    os._exit = _exit  # type: ignore[assignment]
