"""Writes traces as rows, one an event, for spreadsheets and data frames: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from importlib import import_module, util
from typing import TYPE_CHECKING, Any, Final

from hotbed.errors import UsageError
from hotbed.files import replacing
from hotbed.trace.model import NONE, Action
from hotbed.trace.overview import curves

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from hotbed.trace.model import Frame, Trace

HEADINGS: Final = (
    "device", "event", "action", "address", "size_bytes", "stream", "pool", "time_us", "step", "category", "metadata",
    "allocated_bytes", "reserved_bytes", "stack",
)  # fmt: skip
"""Bytes allocated and reserved are those behind the event; a stack is "file:line name", innermost first, with ; between."""


def write_csv(path: str | os.PathLike[str], traces: Sequence[Trace]) -> None:
    """Writes UTF-8 with a heading; what is unknown is empty. Raises as files.replacing."""
    with replacing(path) as out:
        text = io.TextIOWrapper(out, "utf-8", "backslashreplace", newline="")
        writer = csv.writer(text)
        writer.writerow(HEADINGS)
        for trace in traces:
            writer.writerows(zip(*_columns(trace), strict=True))
        text.flush()
        text.detach()


def write_parquet(path: str | os.PathLike[str], traces: Sequence[Trace]) -> None:
    """Writes a table of the same columns; what is unknown is null. Raises UsageError without pyarrow."""
    if util.find_spec("pyarrow") is None:
        raise UsageError("Parquet needs the package pyarrow", hint="pip install pyarrow, or write a .csv")
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    with replacing(path) as out:
        tables = [arrow.table(dict(zip(HEADINGS, _columns(trace), strict=True))) for trace in traces]
        parquet.write_table(arrow.concat_tables(tables, promote_options="default"), out)


def _columns(trace: Trace) -> list[list[Any]]:
    events, levels, count = trace.events, curves(trace), len(trace.events)
    names = {int(action): action.name.lower() for action in Action}
    stacks = [_stack(stack) for stack in trace.stacks]
    pools = [f"{first}.{second}" for first, second in trace.pools]
    return [
        [trace.device] * count,
        list(range(count)),
        [names[action] for action in events.action.tolist()],
        [f"{address:#x}" for address in events.address.tolist()],
        events.size.tolist(),
        [f"{stream:#x}" for stream in events.stream.tolist()],
        _named(events.pool.tolist(), pools),
        [time_us or None for time_us in events.time_us.tolist()],
        [None if step == NONE else step for step in events.step.tolist()],
        _named(events.category.tolist(), trace.strings),
        _named(events.metadata.tolist(), trace.strings),
        levels.allocated.tolist(),
        levels.reserved.tolist(),
        _named(events.stack.tolist(), stacks),
    ]


def _named(indices: Sequence[int], names: Sequence[str]) -> list[str | None]:
    return [None if index == NONE else names[index] for index in indices]


def _stack(stack: Sequence[Frame]) -> str:
    return "; ".join(f"{frame.filename}:{frame.line} {frame.name}" for frame in stack)
