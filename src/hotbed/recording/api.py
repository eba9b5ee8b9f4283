"""`hotbed.record`: records the process that calls it."""

from __future__ import annotations

import atexit
import sys
from typing import TYPE_CHECKING

from hotbed.errors import UsageError
from hotbed.recording.beginning import attach
from hotbed.recording.current import current, make_current, refuse_second
from hotbed.recording.files import make_room, path_of_rank, rank
from hotbed.recording.recorder import Options, Recorder
from hotbed.recording.schedule import Plan

if TYPE_CHECKING:
    import os
    from pathlib import Path
    from types import TracebackType


class Recording:
    """A recording in a `with` block; `path` is the file it goes to, with the rank in its name where there are several."""

    def __init__(self, path: str | os.PathLike[str], plan: Plan) -> None:
        self._asked, self._plan = path, plan
        self.path = path_of_rank(path, rank())

    def __enter__(self) -> Recording:
        _start(self._asked, self._plan)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        recorder = current()
        if recorder is not None:
            recorder.raised(error)
            recorder.stop()


class Record:
    """`with hotbed.record("run.hbt"):` records the block; start(), stop() and step() do it by hand.

    Only this process is recorded, not its children. Memory that was there before has no stacks.
    """

    def __call__(
        self,
        path: str | os.PathLike[str],
        *,
        budget_percent: float = 1.0,
        everything: bool = False,
        every: int | None = None,
    ) -> Recording:
        """A context manager that records into `path`; an earlier recording there is replaced.

        Reading torch's history may take `budget_percent` of the time, once the first 10 steps are over; `everything` reads
        all of it at whatever cost, `every` the last of so many steps. Raises UsageError where the process is being
        recorded already or something else than a recording is at `path`, OSError where it cannot be written.
        """
        return Recording(path, _plan(budget_percent, everything, every))

    def start(
        self,
        path: str | os.PathLike[str],
        *,
        budget_percent: float = 1.0,
        everything: bool = False,
        every: int | None = None,
    ) -> Path:
        """Begins to record into `path`, until stop() or the end of the process. Arguments and errors as above.

        Returns the file: that of this rank, where the process is one of several.
        """
        return _start(path, _plan(budget_percent, everything, every))

    def stop(self) -> None:
        """Ends the recording. Does nothing where none is under way."""
        recorder = current()
        if recorder is not None:
            recorder.stop()

    def step(self) -> None:
        """Says that a step is over. From the first call on optimizers no longer count. Does nothing without a recording."""
        recorder = current()
        if recorder is not None:
            recorder.step()


record = Record()


def _plan(budget_percent: float, everything: bool, every: int | None) -> Plan:
    if not 0 < budget_percent <= 100:
        raise UsageError(f"a budget of {budget_percent} % is not possible", hint="budget_percent=1")
    if every is not None and every < 1:
        raise UsageError(f"every={every}: count steps from 1")
    return Plan(budget=budget_percent / 100, whole=everything, every=every)


def _start(path: str | os.PathLike[str], plan: Plan) -> Path:
    refuse_second()
    number = rank()
    target = path_of_rank(path, number)
    if "torch" in sys.modules and sys.modules["torch"].version.cuda is None:
        raise UsageError("this torch is built without CUDA: there is nothing to record")
    make_room(target)
    recorder = Recorder(target, Options(plan, facts={"rank": number}))
    make_current(recorder)
    attach(recorder)
    atexit.register(recorder.stop)
    return target
