"""load_trace: a file of any kind that hotbed understands becomes a Trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import TraceError
from hotbed.trace.entries import raw_from_value
from hotbed.trace.layout import MAGIC
from hotbed.trace.native import read_native
from hotbed.trace.opcodes import read_plain_pickle
from hotbed.trace.reader import defects_of, read_hbt
from hotbed.trace.snapshot import devices_in, trace_of
from hotbed.trace.source import open_source, unpack_limit_bytes
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from hotbed.trace.model import Trace
    from hotbed.trace.raw import RawSnapshot
    from hotbed.trace.source import Buffer

# Python objects of a snapshot take about this much more memory than the pickle.
_OBJECT_FACTOR = 10


def load_trace(path: str | PathLike[str], device: int | None = None) -> Trace:
    """The allocator history in `path`: a torch memory snapshot of torch 2.1 to 2.15 (pickle; plain, gzip, xz or
    zstd) or an .hbt trace. What the file is, its content tells, not its name.

    `device` picks one of several; None takes the one with most events, and Trace.other_devices lists the rest.
    Nothing in the file is ever executed. Raises TraceError (with a hint) for files that cannot be read, that
    are cut short or hostile, or that hold nothing of `device`; OSError where the file cannot be opened.
    """
    return _load(Path(path), lambda known: [known[0] if device is None else _known(device, known)])[0]


def load_devices(path: str | PathLike[str]) -> list[Trace]:
    """Every device of `path` that has events or memory, the one with most events first. Raises as load_trace."""
    return _load(Path(path), lambda known: known)


def file_defects(path: str | PathLike[str]) -> list[str]:
    """What is wrong with the file around its events, one sentence each: .hbt files that were cut short or damaged.

    Snapshots have no such state: load_trace refuses them. Raises TraceError for a header of another version.
    """
    with open_source(Path(path)) as data:
        return defects_of(data) if data[: len(MAGIC)] == MAGIC else []


def _load(path: Path, choose: Callable[[list[int]], list[int]]) -> list[Trace]:
    try:
        with open_source(path) as data:
            if data[: len(MAGIC)] == MAGIC:
                found = {trace.device: trace for trace in read_hbt(data, str(path))}
                order = sorted(found, key=lambda device: (-len(found[device].events), device))
                return [found[device] for device in choose(order)]
            raw = read_native(data) or _read_slowly(data)
        return [trace_of(raw, device, str(path)) for device in choose(list(devices_in(raw)))]
    except TraceError as error:
        raise TraceError(f"{path}: {error.message}", hint=error.hint) from error


def _read_slowly(data: Buffer) -> RawSnapshot:
    """What the native reader leaves over: protocol 0, oddities, and everything where it was not built."""
    if len(data) * _OBJECT_FACTOR > 2 * unpack_limit_bytes():
        raise TraceError(
            f"reading {format_size(len(data))} without the native reader would take more memory than there is",
            hint="use a hotbed wheel for Linux, and a snapshot as torch.cuda.memory._dump_snapshot writes it",
        )
    return raw_from_value(read_plain_pickle(data))


def _known(device: int, known: list[int]) -> int:
    if device not in known:
        listed = ", ".join(map(str, sorted(known)))
        raise TraceError(f"the file holds nothing of device {device}", hint=f"devices in this file: {listed}")
    return device
