"""The recorder of this process, also for a copy of hotbed that the recorder itself was not loaded from."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from hotbed.errors import UsageError

if TYPE_CHECKING:
    from hotbed.recording.recorder import Recorder

# `hotbed record` lends its modules to the process and hides them from the program, whose own hotbed finds this name.
_PLACE = "_hotbed_recorder"


def current() -> Recorder | None:
    """The recorder at work in this process; None if there is none, and in children forked from a recorded process."""
    place = sys.modules.get(_PLACE)
    if place is None or place.__dict__["owner"] != os.getpid():
        return None
    recorder: Recorder = place.__dict__["recorder"]
    return None if recorder.closed else recorder


def refuse_second() -> None:
    """Raises UsageError if a recorder is at work."""
    found = current()
    if found is not None:
        raise UsageError(
            f"this process is already being recorded, into {found.path}",
            hint="end that recording first; one process has one history",
        )


def make_current(recorder: Recorder) -> None:
    """Makes it the recorder of this process."""
    place = ModuleType(_PLACE)
    place.__dict__.update(recorder=recorder, owner=os.getpid())
    sys.modules[_PLACE] = place
