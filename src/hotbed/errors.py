"""The error family: every failure a user can meet carries a message, a hint and an exit code."""

from __future__ import annotations


class HotbedError(Exception):
    """Base of all hotbed errors.

    `message` says what is wrong and why, in one line; `hint` says what to do and can be pasted where that
    makes sense; `exit_code` is the status of the command line (1: the user can fix it).
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HotbedError):
    """The command or call cannot mean anything: unknown name, contradictory options."""

    exit_code = 2


class InternalError(HotbedError):
    """Our fault: an invariant did not hold."""

    exit_code = 2


class TraceError(HotbedError):
    """A trace or snapshot cannot be read, or lacks what was asked of it."""


class SettingsError(HotbedError):
    """Allocator settings or a hotbed.toml are invalid for the torch they are meant for."""


class TorchError(HotbedError):
    """The torch that should run is missing, has no CUDA or behaves unlike any tested one."""


class PlatformError(HotbedError):
    """This machine cannot do it, e.g. the phantom GPU outside Linux."""
