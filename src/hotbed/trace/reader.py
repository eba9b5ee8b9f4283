"""Reads .hbt files: chunks become the Trace of each device, also where the end of the file is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from hotbed.errors import TraceError
from hotbed.trace import layout
from hotbed.trace.chunks import Tail, walk
from hotbed.trace.columns import DTYPES, DamagedError, read_table
from hotbed.trace.model import (
    DEFAULT_POOL,
    NONE,
    Block,
    DeviceInfo,
    Events,
    Frame,
    NvmlSample,
    PoolId,
    Segment,
    Trace,
)
from hotbed.trace.numbering import canonical
from hotbed.trace.raw_recording import RawRecording
from hotbed.trace.recorded_json import recorded_from_json
from hotbed.trace.source import unpack_limit_bytes
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from hotbed.trace.columns import Rows
    from hotbed.trace.recorded import Recorded
    from hotbed.trace.source import Buffer

T = TypeVar("T")

# Bytes that one event takes in memory, over all columns.
_EVENT_BYTES: Final = 64


@dataclass
class _Device:
    """What the chunks said of one device so far."""

    events: list[dict[str, npt.NDArray[Any]]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    final: tuple[Segment, ...] = ()
    initial: tuple[Segment, ...] = ()
    nvml: list[NvmlSample] = field(default_factory=list)
    recorded: Recorded | None = None


@dataclass
class _Recording:
    """What the chunks said so far: the tables, the facts, and the devices."""

    facts: dict[str, Any] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    stacks: list[tuple[Frame, ...]] = field(default_factory=list)
    pools: list[PoolId] = field(default_factory=list)
    devices: dict[int, _Device] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    complete: bool = False
    budget: int = 0
    source: str = ""
    raw: RawRecording = field(default_factory=RawRecording)

    def device(self, payload: bytes) -> _Device:
        return self.devices.setdefault(_prefix(payload), _Device())

    def spend(self, size: int) -> None:
        self.budget -= size
        if self.budget < 0:
            raise TraceError(
                f"the .hbt file unpacks to more than {format_size(unpack_limit_bytes())}",
                hint="read it on a machine with more memory",
            )


def read_hbt(data: Buffer, source: str) -> list[Trace]:
    """A Trace for each device in `data`, by device number.

    A file that was cut short, or whose tail is damaged, gives what stands before; Trace.missing says so. Raises
    TraceError for a header of another version, for chunks that this version must know and does not, and for
    files in which nothing was recorded.
    """
    recording = _read(data, source)
    if recording.raw:
        return [_completed(recording, number) for number in sorted(recording.raw.windows)]
    if not recording.devices:
        raise TraceError(
            "the .hbt file holds no events and no memory map",
            hint="the program used no GPU, ended too early, or had the backend cudaMallocAsync, of which torch keeps no history",
        )
    return [_trace(recording, number, source) for number in sorted(recording.devices)]


def defects_of(data: Buffer) -> list[str]:
    """What is wrong with the file itself: a cut or damaged tail, or a recording that was not closed."""
    return _read(data, "").missing


def _read(data: Buffer, source: str) -> _Recording:
    recording = _Recording(budget=unpack_limit_bytes(), source=source)
    for chunk in walk(data):
        if isinstance(chunk, Tail):
            recording.missing.append(_tail(chunk))
            break
        handler = _HANDLERS.get(chunk.kind)
        if handler is None and chunk.kind[:1].isupper():
            raise TraceError(
                f"the .hbt file has a chunk {chunk.kind.decode('latin-1')!r} that this hotbed does not know",
                hint="pip install --upgrade hotbed",
            )
        try:
            recording.spend(len(chunk.payload))
            if handler is not None:
                handler(recording, chunk.payload)
        except (DamagedError, ValueError, IndexError, RecursionError, AttributeError) as error:
            recording.missing.append(
                f"the chunk at byte {chunk.offset} is damaged ({error}); what follows is left out"
            )
            break
    if not recording.complete and not recording.missing:
        recording.missing.append(
            "the recording was not closed: the process was killed or still runs; what followed the last chunk is missing"
        )
    return recording


def _tail(tail: Tail) -> str:
    return f"the last {tail.size_bytes} bytes, from byte {tail.offset}, are left out: {tail.reason}"


def _prefix(payload: bytes) -> int:
    if len(payload) < layout.PREFIX.size:
        raise DamagedError("a payload is too short")
    number: int = layout.PREFIX.unpack_from(payload)[0]
    return number


def _meta(recording: _Recording, payload: bytes) -> None:
    facts = json.loads(payload)
    if type(facts) is not dict:
        raise DamagedError("META is no object")
    number = facts.pop("device", None)
    if type(number) is int:
        recording.devices.setdefault(number, _Device()).facts.update(facts)
    else:
        recording.facts.update(facts)


def _done(recording: _Recording, payload: bytes) -> None:
    promised = json.loads(payload).get("events")
    found = sum(len(chunk["action"]) for device in recording.devices.values() for chunk in device.events)
    if promised != found:
        raise DamagedError(f"{promised} events were written, {found} are there")
    recording.complete = True


def _at_end(payload: bytes, table: Sequence[object]) -> None:
    if _prefix(payload) != len(table):
        raise DamagedError("a table does not continue where it ended")


def _pieces(payload: bytes) -> tuple[list[int], int]:
    """Where each variable-length entry ends, counted from the first, and where in the payload the first begins."""
    rows = read_table(payload, layout.PREFIX.size, (("length", "I", 0),))
    return np.cumsum(rows.columns["length"], dtype=np.int64).tolist(), rows.end


def _strings(recording: _Recording, payload: bytes) -> None:
    _at_end(payload, recording.strings)
    ends, start = _pieces(payload)
    text = payload[start:]
    if (ends[-1] if ends else 0) != len(text):
        raise DamagedError("strings have the wrong length")
    starts = [0, *ends]
    recording.strings += [
        str(text[a:b], "utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=False)
    ]


def _frames(recording: _Recording, payload: bytes) -> None:
    _at_end(payload, recording.frames)
    columns = read_table(payload, layout.PREFIX.size, layout.FRAME_COLUMNS).columns
    strings = recording.strings
    filenames, names = (_checked(columns[name], len(strings)).tolist() for name in ("filename", "name"))
    rows = zip(filenames, columns["line"].tolist(), names, strict=True)
    recording.frames += [Frame(strings[filename], line, strings[name]) for filename, line, name in rows]


def _stacks(recording: _Recording, payload: bytes) -> None:
    _at_end(payload, recording.stacks)
    ends, start = _pieces(payload)
    if len(payload) - start != 4 * (ends[-1] if ends else 0):
        raise DamagedError("stacks have the wrong length")
    indices = np.frombuffer(payload, "<u4", -1, start).tolist()
    frames = recording.frames
    starts = [0, *ends]
    recording.stacks += [tuple(frames[i] for i in indices[a:b]) for a, b in zip(starts, ends, strict=False)]


def _pools(recording: _Recording, payload: bytes) -> None:
    _at_end(payload, recording.pools)
    columns = read_table(payload, layout.PREFIX.size, layout.POOL_COLUMNS).columns
    recording.pools += zip(columns["first"].tolist(), columns["second"].tolist(), strict=True)


def _checked(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """`column` if all its indices are within a table of `size` entries or NONE."""
    if len(column) and (int(column.max()) >= size or int(column.min()) < NONE):
        raise DamagedError("an index points outside its table")
    return column


def _events(recording: _Recording, payload: bytes) -> None:
    device = recording.device(payload)
    rows = read_table(payload, layout.PREFIX.size, layout.EVENT_COLUMNS)
    recording.spend(rows.count * _EVENT_BYTES)
    for name, size in (
        ("pool", len(recording.pools)),
        ("stack", len(recording.stacks)),
        ("metadata", len(recording.strings)),
        ("category", len(recording.strings)),
        ("compile_context", len(recording.strings)),
    ):
        _checked(rows.columns[name], size)
    device.events.append(rows.columns)


def _nvml(recording: _Recording, payload: bytes) -> None:
    columns = read_table(payload, layout.PREFIX.size, layout.NVML_COLUMNS).columns
    rows = zip(*(columns[name].tolist() for name, _, _ in layout.NVML_COLUMNS), strict=True)
    recording.device(payload).nvml += [
        NvmlSample(time_us, used, None if process == NONE else process) for time_us, used, process in rows
    ]


def _recorded(recording: _Recording, payload: bytes) -> None:
    recording.device(payload).recorded = recorded_from_json(payload[layout.PREFIX.size :])


def _window(recording: _Recording, payload: bytes) -> None:
    recording.raw.window(payload, recording.source)


def _seen(recording: _Recording, payload: bytes) -> None:
    recording.raw.seen(payload)


def _final_map(recording: _Recording, payload: bytes) -> None:
    recording.device(payload).final = _map(recording, payload)


def _initial_map(recording: _Recording, payload: bytes) -> None:
    recording.device(payload).initial = _map(recording, payload)


def _map(recording: _Recording, payload: bytes) -> tuple[Segment, ...]:
    segments = read_table(payload, layout.PREFIX.size, layout.SEGMENT_COLUMNS)
    rows = read_table(payload, segments.end, layout.BLOCK_COLUMNS)
    if int(segments.columns["block_count"].sum(dtype=np.int64)) != rows.count:
        raise DamagedError("a memory map has the wrong number of blocks")
    blocks = _blocks(recording, rows)
    _checked(segments.columns["pool"], len(recording.pools))
    found = []
    first = 0
    for address, size, stream, pool, flags, count in zip(
        *(segments.columns[name].tolist() for name, _, _ in layout.SEGMENT_COLUMNS), strict=True
    ):
        where = DEFAULT_POOL if pool == NONE else recording.pools[pool]
        inside = tuple(blocks[first : first + count])
        large, expandable = bool(flags & layout.LARGE), bool(flags & layout.EXPANDABLE)
        found.append(Segment(address, size, stream, large, expandable, where, inside))
        first += count
    return tuple(found)


def _blocks(recording: _Recording, rows: Rows) -> list[Block]:
    _checked(rows.columns["stack"], len(recording.stacks))
    _checked(rows.columns["state"], len(recording.strings))
    values = zip(*(rows.columns[name].tolist() for name, _, _ in layout.BLOCK_COLUMNS), strict=True)
    return [
        Block(address, size, requested, recording.strings[state] if state != NONE else "inactive", stack)
        for address, size, requested, state, stack in values
    ]


_HANDLERS: Final[dict[bytes, Callable[[_Recording, bytes], None]]] = {
    layout.META: _meta,
    layout.STRINGS: _strings,
    layout.FRAMES: _frames,
    layout.STACKS: _stacks,
    layout.POOLS: _pools,
    layout.EVENTS: _events,
    layout.FINAL_MAP: _final_map,
    layout.INITIAL_MAP: _initial_map,
    layout.NVML: _nvml,
    layout.RECORDED: _recorded,
    layout.WINDOW: _window,
    layout.SEEN: _seen,
    layout.DONE: _done,
}


def _trace(recording: _Recording, number: int, source: str) -> Trace:
    device = recording.devices[number]
    facts = {**recording.facts, **device.facts}
    events = _joined(device.events)
    missing = [*_texts(facts.get("missing")), *recording.missing]
    if len(events) and not events.address.any():
        missing.append("addresses were not recorded")
    return canonical(
        Trace(
            source=source,
            device=number,
            events=events,
            segments=device.final,
            initial_segments=device.initial,
            pools=tuple(dict.fromkeys([*recording.pools, DEFAULT_POOL])),
            stacks=tuple(recording.stacks),
            strings=tuple(recording.strings),
            settings=_fact(facts, "settings", str) or "",
            torch_version=_fact(facts, "torch_version", str),
            device_info=DeviceInfo(_fact(facts, "device_name", str), _fact(facts, "total_bytes", int)),
            rank=_fact(facts, "rank", int),
            other_devices=tuple(
                i for i in sorted(recording.devices) if recording.devices[i].events and i != number
            ),
            nvml=tuple(device.nvml),
            missing=tuple(dict.fromkeys(missing)),
            recorded=device.recorded,
        )
    )


def _completed(recording: _Recording, number: int) -> Trace:
    """A device of a recording that holds windows instead of events."""
    trace = recording.raw.trace(number, recording.complete)
    facts = {**recording.facts, **(recording.devices[number].facts if number in recording.devices else {})}
    missing = (*trace.missing, *_texts(facts.get("missing")), *recording.missing)
    return replace(
        trace,
        torch_version=_fact(facts, "torch_version", str),
        device_info=DeviceInfo(_fact(facts, "device_name", str), _fact(facts, "total_bytes", int)),
        rank=_fact(facts, "rank", int),
        other_devices=tuple(i for i in sorted(recording.raw.windows) if i != number),
        missing=tuple(dict.fromkeys(missing)),
    )


def _fact(facts: dict[str, Any], name: str, kind: type[T]) -> T | None:
    value = facts.get(name)
    return value if type(value) is kind else None


def _texts(value: object) -> list[str]:
    return [text for text in value if type(text) is str] if type(value) is list else []


def _joined(chunks: list[dict[str, npt.NDArray[Any]]]) -> Events:
    columns: dict[str, Any] = {
        # Native byte order and writable: what came from the file is neither for sure.
        name: np.concatenate([chunk.pop(name) for chunk in chunks] or [np.empty(0, DTYPES[code])]).astype(
            np.dtype(DTYPES[code]).newbyteorder("="), copy=False
        )
        for name, code, _ in layout.EVENT_COLUMNS
    }
    return Events(**columns)
