"""`hotbed.guard`: the guard of the process that calls it."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, get_args

from hotbed.errors import UsageError
from hotbed.recording.guard.report import Report, report_of
from hotbed.recording.guard.running import Options, Policy, Running

if TYPE_CHECKING:
    from types import TracebackType

_VARIABLE = "HOTBED_GUARD"
# `hotbed record` lends its modules to the process and hides them from the program, whose own hotbed finds this name.
_PLACE = "_hotbed_guard"


class Guard:
    """`hotbed.guard()` starts it, and is a context manager that stops it; a second call changes its settings.

    It watches calls that empty caches, tells why memory ran out, and says when memory grows from step to step.
    """

    def __call__(
        self,
        policy: Policy = "warn",
        *,
        idle: float = 5.0,
        leaks: bool = True,
        postmortem: bool = True,
        stacks: bool = False,
        folder: str | os.PathLike[str] = ".",
    ) -> Guard:
        """Starts the guard of this process; an earlier one is stopped.

        `policy`: "warn" says once for each line that empties the cache for nothing; "skip" does not carry such calls out,
        until memory is near its limit, a load is announced, or `idle` seconds pass without work; "off" only counts.
        `leaks`: watch for growth. `postmortem`: write a file into `folder` when running out of memory ends the program;
        `stacks`: with the last 20,000 events and the stacks of what is live, which costs about 1 us an event meanwhile.
        Raises UsageError for other values.
        """
        if policy not in get_args(Policy):
            raise UsageError(
                f"there is no guard policy {policy!r}", hint="policies: " + ", ".join(get_args(Policy))
            )
        if idle <= 0:
            raise UsageError(f"idle={idle}: give seconds above 0")
        self.stop()
        _make_running(Running(Options(policy, idle, leaks, postmortem, stacks, os.path.abspath(folder))))  # noqa: PTH100
        return self

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def loading(self, size_bytes: int) -> None:
        """Announces that the program is about to load so many bytes: the next call of empty_cache() is carried out, and
        one that was skipped is made up for where they would not fit. Does nothing without a guard."""
        running = _running()
        if running is not None:
            running.loading(size_bytes)

    def report(self) -> Report:
        """What was seen since the guard started. Raises UsageError if none was."""
        running = _running()
        if running is None:
            raise UsageError("no guard was started in this process", hint="hotbed.guard()")
        return report_of(running)

    def stop(self) -> None:
        """Puts everything back that the guard has hooked; its report stays. A second call does nothing."""
        running = _running()
        if running is not None:
            running.stop()


guard = Guard()


def _running() -> Running | None:
    """The guard of this process, also of another copy of hotbed; None in children forked from a guarded process."""
    place = sys.modules.get(_PLACE)
    if place is None or place.__dict__["owner"] != os.getpid():
        return None
    found: Running = place.__dict__["running"]
    return found


def _make_running(running: Running) -> None:
    place = ModuleType(_PLACE)
    place.__dict__.update(running=running, owner=os.getpid())
    sys.modules[_PLACE] = place


def guard_as_asked() -> None:
    """Starts the guard that HOTBED_GUARD asks for: 1, warn, skip or off; does nothing where it is not set or empty."""
    asked = os.environ.get(_VARIABLE, "").strip().lower()
    if asked in ("", "0"):
        return
    known = {"1": "warn", "warn": "warn", "skip": "skip", "off": "off"}
    if asked not in known:
        raise UsageError(f"{_VARIABLE}={asked} is not possible", hint=f"{_VARIABLE}=1, warn, skip or off")
    guard(known[asked])  # type: ignore[arg-type]
