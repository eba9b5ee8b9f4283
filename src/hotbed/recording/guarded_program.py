"""A program that `hotbed guard` started: runs it to its own end with a guard, and says at the end what was seen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hotbed.recording.ending import INTERRUPTED_CODE, exit_code, run_to_end, show
from hotbed.recording.guard.api import guard
from hotbed.recording.guard.words import say

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


def record(job: dict[str, Any], _folder: Path, _borrowed: AbstractContextManager[None]) -> int:
    """Runs the program of `job` with the guard that job["guard"] describes. Returns the exit status."""
    guard(**job["guard"])
    process = os.getpid()
    code = _run(job)
    if os.getpid() != process:
        # A child that the program forked comes here too; it has no guard.
        return code
    report = guard.report()
    if report.sites or report.out_of_memory or report.growing:
        say(str(report))
    guard.stop()
    return code


def _run(job: dict[str, Any]) -> int:
    try:
        return exit_code(run_to_end(job))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the user must see it as python shows it
        show(error)
        return INTERRUPTED_CODE if isinstance(error, KeyboardInterrupt) else 1
