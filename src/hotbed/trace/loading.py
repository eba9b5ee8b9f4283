"""load_trace: a file of any kind that hotbed understands becomes a Trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import TraceError
from hotbed.trace.entries import raw_from_value
from hotbed.trace.native import read_native
from hotbed.trace.opcodes import read_plain_pickle
from hotbed.trace.snapshot import trace_from_raw
from hotbed.trace.source import open_source

if TYPE_CHECKING:
    from os import PathLike

    from hotbed.trace.model import Trace


def load_trace(path: str | PathLike[str], device: int | None = None) -> Trace:
    """The allocator history in `path`: a torch memory snapshot of torch 2.1 to 2.15 (pickle; plain, gzip, xz or
    zstd) or an .hbt trace. What the file is, its content tells, not its name.

    `device` picks one of several; None takes the one with most events, and Trace.other_devices lists the rest.
    Nothing in the file is ever executed. Raises TraceError (with a hint) for files that cannot be read, that
    are cut short or hostile, or that hold nothing of `device`; OSError where the file cannot be opened.
    """
    where = Path(path)
    try:
        with open_source(where) as data:
            raw = read_native(data) or raw_from_value(read_plain_pickle(data))
        return trace_from_raw(raw, str(where), device)
    except TraceError as error:
        raise TraceError(f"{where}: {error.message}", hint=error.hint) from error
