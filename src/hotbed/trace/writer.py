"""Writes .hbt files from inside a recorded process: append-only, standard library only, whole chunks or nothing."""

from __future__ import annotations

import json
import os
import threading
import weakref
from array import array
from typing import TYPE_CHECKING, Any

from hotbed.trace import layout
from hotbed.trace.chunk_file import ChunkFile
from hotbed.trace.model import NONE
from hotbed.trace.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hotbed.trace.model import Segment


class TraceWriter:
    """One .hbt file that is being recorded.

    Tables (strings, frames, stacks, pools) are filled through string(), stack() and pool(), which return the index
    that event() takes. Events are buffered and written as a chunk every `chunk_events` events, and by flush();
    a process that is killed loses what was not flushed and nothing else. Safe to call from several threads. In
    a forked child every call does nothing: the file belongs to the parent.

    Raises FileExistsError where `path` exists, OSError where it cannot be written; a chunk that did not fit on
    the disk is taken back, so that the file stays readable.
    """

    def __init__(self, path: str | os.PathLike[str], *, chunk_events: int = 8192) -> None:
        self._file = ChunkFile(path)
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._chunk_events = chunk_events
        self._tables = Tables()
        self._events: dict[int, list[array[int]]] = {}
        self._pending = 0
        self._count = 0
        # A child forked while another thread writes would inherit a lock that nobody releases.
        os.register_at_fork(after_in_child=_unlocker(weakref.ref(self)))

    def meta(self, device: int | None = None, **facts: Any) -> None:
        """Notes JSON-able facts about the recording, or about one device; later ones replace earlier ones.

        The reader knows torch_version, settings, rank, missing and, with a device, device_name, total_bytes.
        """
        content = facts if device is None else {"device": device, **facts}
        self._write(layout.META, json.dumps(content).encode())

    def string(self, text: str) -> int:
        """Index of `text` in the table of strings."""
        with self._lock:
            return self._tables.string(text)

    def stack(self, frames: Sequence[tuple[str, int, str]]) -> int:
        """Index of a call stack of (filename, line, name), innermost first; NONE for an empty one."""
        with self._lock:
            return self._tables.stack(frames)

    def pool(self, first: int, second: int) -> int:
        """Index of a pool id."""
        with self._lock:
            return self._tables.pool(first, second)

    def event(
        self,
        action: int,
        *,
        device: int = 0,
        address: int = 0,
        size: int = 0,
        stream: int = 0,
        pool: int = NONE,
        time_us: int = 0,
        stack: int = NONE,
        metadata: int = NONE,
        step: int = NONE,
        category: int = NONE,
        compile_context: int = NONE,
    ) -> None:
        """Adds an event; the arguments are a row of hotbed.trace.Events, indices from the methods above."""
        row = (action, address, size, stream, pool, time_us, stack, metadata, step, category, compile_context)
        if os.getpid() != self._owner:
            return
        with self._lock:
            columns = self._events.get(device)
            if columns is None:
                columns = self._events[device] = [array(code) for _, code, _ in layout.EVENT_COLUMNS]
            _add_row(columns, row)
            self._pending += 1
            if self._pending >= self._chunk_events:
                self.flush()

    def nvml(self, device: int, samples: Iterable[tuple[int, int, int | None]]) -> None:
        """Adds NVML samples of (time_us, used_bytes of all processes, process_bytes or None)."""
        columns = [array(code) for _, code, _ in layout.NVML_COLUMNS]
        for time_us, used, process in samples:
            _add_row(columns, (time_us, used, NONE if process is None else process))
        self._write(
            layout.NVML, layout.PREFIX.pack(device) + layout.plain_table(layout.NVML_COLUMNS, columns)
        )

    def final_map(self, device: int, segments: Iterable[Segment], stacks: Sequence[int] = ()) -> None:
        """Writes the memory map at the end; Block.stack is an index that stack() gave, or one into `stacks`."""
        self._map(layout.FINAL_MAP, device, segments, stacks)

    def initial_map(self, device: int, segments: Iterable[Segment], stacks: Sequence[int] = ()) -> None:
        """Writes the memory map before the first event."""
        self._map(layout.INITIAL_MAP, device, segments, stacks)

    def flush(self) -> None:
        """Writes what is buffered."""
        with self._lock:
            for kind, payload in self._tables.new():
                self._file.append(layout.chunk(kind, payload))
            for device, columns in self._events.items():
                if not columns[0]:
                    continue
                payload = layout.PREFIX.pack(device) + layout.plain_table(layout.EVENT_COLUMNS, columns)
                self._file.append(layout.chunk(layout.EVENTS, payload))
                self._count += len(columns[0])
                for column in columns:
                    del column[:]
            self._pending = 0

    def close(self) -> None:
        """Flushes, marks the file as complete and closes it; a second call does nothing."""
        with self._lock:
            if self._file.closed or os.getpid() != self._owner:
                return
            self.flush()
            self._write(layout.DONE, json.dumps({"events": self._count}).encode())
            self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _map(self, kind: bytes, device: int, segments: Iterable[Segment], stacks: Sequence[int]) -> None:
        with self._lock:
            tables = self._tables.memory_map(segments, stacks)
        self._write(kind, layout.PREFIX.pack(device) + tables)

    def _write(self, kind: bytes, payload: bytes) -> None:
        with self._lock:
            # First the buffered events: the order of chunks is the order of what happened.
            self.flush()
            self._file.append(layout.chunk(kind, payload))


def _add_row(columns: list[array[int]], row: tuple[int, ...]) -> None:
    """Appends one value to each column; a value that does not fit leaves all columns as they were."""
    rows = len(columns[0])
    try:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    except (OverflowError, TypeError):
        for column in columns:
            del column[rows:]
        raise


def _unlocker(writer: weakref.ref[TraceWriter]) -> Callable[[], None]:
    def unlock() -> None:
        alive = writer()
        if alive is not None:
            alive._lock = threading.RLock()

    return unlock
