"""Rows that a recorder wrote beside torch's history, as what steps, categories and Recorded are made of."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from hotbed.trace.columns import DamagedError
from hotbed.trace.model import Action, Frame
from hotbed.trace.recorded import CacheCall, CallKind, Failure, Holding, Recorded, Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.trace.marking.blocks import Blocks
    from hotbed.trace.marking.phases import Stretch

Counted = tuple[int, int, int, int, int, int, int, int, int]
"""fields of hotbed.trace.marking.counts.Counters"""
Positions = list[Counted | None]
"""by device"""
_RESERVED = 3
_NEAR_US = 1_000_000


class _Note(msgspec.Struct):
    mark: int
    device: int
    category: str
    addresses: list[int]


class _Bytes(msgspec.Struct):
    allocated_before: int
    allocated_after: int
    reserved_before: int
    reserved_after: int


class _Call(msgspec.Struct):
    time_us: int
    positions: Positions
    kind: CallKind
    seconds: float
    devices: dict[str, _Bytes]
    where: Frame | None = None
    skipped: bool = False


class _Sample(msgspec.Struct):
    time_us: int
    positions: Positions
    devices: dict[str, list[Holding]]


class _Failure(msgspec.Struct):
    time_us: int
    positions: Positions
    device: int
    where: Frame | None = None
    message: str = ""
    requested_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    process_bytes: int | None = None
    others_bytes: int | None = None
    limit_bytes: int | None = None


class _Seen(msgspec.Struct):
    """One chunk: what came since the one before."""

    time_us: int
    begun_us: int | None = None
    waited_s: float = 0.0
    marks: list[tuple[str, int, Positions | None]] = []
    notes: list[_Note] = []
    stepped: list[tuple[int, int]] = []
    by_hand: list[int] = []
    regular: list[int] = []
    optimizers: int = 0
    trouble: str | None = None
    calls: list[_Call] = []
    samples: list[_Sample] = []
    failures: list[_Failure] = []
    messages: list[tuple[int, str]] = []
    processes: list[tuple[int, int | None]] = []


@dataclass
class Rows:
    """All of them, in order of time."""

    marks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    stepped: list[tuple[int, int]] = field(default_factory=list)
    by_hand: list[int] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    samples: list[_Sample] = field(default_factory=list)
    failures: list[_Failure] = field(default_factory=list)
    processes: dict[int, int | None] = field(default_factory=dict)
    last: _Seen = field(default_factory=lambda: _Seen(0))
    begun_us: int = 0
    optimizers: int = 0

    def add(self, payload: bytes) -> None:
        """Adds a chunk. Raises DamagedError."""
        try:
            seen = msgspec.json.decode(payload, type=_Seen)
        except msgspec.MsgspecError as error:
            raise DamagedError(f"the recorder's rows: {error}") from None
        self.begun_us = self.begun_us or seen.begun_us or 0
        self.marks += [
            {"kind": kind, "time_us": time, "positions": positions} for kind, time, positions in seen.marks
        ]
        known = range(len(self.marks))
        named = [*(note.mark for note in seen.notes), *(mark for mark, _ in seen.stepped), *seen.by_hand]
        if not all(mark in known for mark in named):
            raise DamagedError("the recorder's rows: a mark is missing")
        self.notes += [msgspec.structs.asdict(note) for note in seen.notes]
        self.stepped += seen.stepped
        self.by_hand += seen.by_hand
        self.calls += seen.calls
        self.samples += seen.samples
        self.failures += seen.failures
        for number, text in seen.messages:
            if 0 <= number < len(self.failures):
                self.failures[number].message = text
        self.processes.update(seen.processes)
        self.optimizers = max(self.optimizers, seen.optimizers)
        self.last = seen

    def begun(self, device: int) -> tuple[int, int]:
        """(allocations, frees) of `device` when recording began."""
        for mark in self.marks:
            if mark["kind"] == "begin":
                counted = _of(mark["positions"], device)
                return counted[:2] if counted else (0, 0)
        return 0, 0

    def report(self) -> dict[str, Any]:
        """What hotbed.trace.marking.categories takes."""
        return {
            "marks": self.marks,
            "notes": self.notes,
            "rounds": self.by_hand or self._rounds(),
            "optimizers": self.optimizers or len(self.by_hand),
            "begun_us": self.begun_us,
            "time_us": self.last.time_us,
        }

    def _rounds(self) -> list[int]:
        """Marks at which each optimizer that counts had stepped once more: see hotbed.recording.rounds."""
        counts = dict.fromkeys(self.last.regular, 0)
        ends: list[int] = []
        for mark, stepper in self.stepped:
            if stepper in counts:
                counts[stepper] += 1
                if counts[stepper] > len(ends) and min(counts.values()) > len(ends):
                    ends.append(mark)
        return ends

    def recorded(self, device: int, blocks: Blocks, stretches: Sequence[Stretch]) -> Recorded:
        """All but the steps and the gaps."""
        finder = _Finder(device, blocks, stretches)
        calls = [call for call in self.calls if str(device) in call.devices]
        samples = [sample for sample in self.samples if str(device) in sample.devices]
        failures = [failure for failure in self.failures if failure.device == device]
        return Recorded(
            calls=tuple(_call(call, call.devices[str(device)], finder) for call in calls),
            samples=tuple(
                Sample(*finder.when(sample), tuple(sample.devices[str(device)])) for sample in samples
            ),
            failures=tuple(_failure(failure, finder) for failure in failures),
            overhead_seconds=self.last.waited_s,
            context_bytes=self._context(device),
        )

    def _context(self, device: int) -> int | None:
        used = self.processes.get(device)
        ends = (_of(mark["positions"], device) for mark in reversed(self.marks) if mark["kind"] == "end")
        end = next(ends, None)
        return None if used is None or end is None else max(used - end[_RESERVED], 0)


def _of(positions: Positions | None, device: int) -> Counted | None:
    return positions[device] if positions and device < len(positions) else None


class _Finder:
    """Places of rows in the trace of one device."""

    def __init__(self, device: int, blocks: Blocks, stretches: Sequence[Stretch]) -> None:
        self._device, self.blocks = device, blocks
        training = [stretch for stretch in stretches if stretch.phase == "train"]
        self._stretches = [
            (stretch.first.time_us, stretch.end.time_us, number) for number, stretch in enumerate(training)
        ]
        self._ooms = np.flatnonzero(blocks.trace.events.action == Action.OOM)

    def when(self, row: _Call | _Sample | _Failure) -> tuple[int, int | None, int | None]:
        """Time, step and event of a row."""
        counted = _of(row.positions, self._device)
        place, in_gap = (None, True) if counted is None else self.blocks.counted.place(*counted[:2])
        return row.time_us, self._step(row.time_us), None if in_gap else place

    def _step(self, time_us: int) -> int | None:
        at = bisect_right(self._stretches, (time_us, time_us, len(self._stretches))) - 1
        inside = at >= 0 and time_us <= self._stretches[at][1]
        return self._stretches[at][2] if inside else None

    def oom(self, time_us: int) -> int | None:
        """The event of the out-of-memory error at that time."""
        times = self.blocks.trace.events.time_us[self._ooms]
        if not len(times):
            return None
        nearest = int(np.abs(times - time_us).argmin())
        return int(self._ooms[nearest]) if abs(int(times[nearest]) - time_us) < _NEAR_US else None

    def line(self, event: int) -> Frame | None:
        """The innermost line of its stack that is not torch's."""
        stack = int(self.blocks.trace.events.stack[event])
        frames = self.blocks.trace.stacks[stack] if stack >= 0 else ()
        return next((frame for frame in frames if "/torch/" not in frame.filename), None)


def _call(call: _Call, of_device: _Bytes, finder: _Finder) -> CacheCall:
    time_us, step, event = finder.when(call)
    return CacheCall(
        kind=call.kind,
        where=call.where,
        time_us=time_us,
        seconds=call.seconds,
        event=event,
        step=step,
        skipped=call.skipped,
        **msgspec.structs.asdict(of_device),
    )


def _failure(failure: _Failure, finder: _Finder) -> Failure:
    time_us, step, place = finder.when(failure)
    event = finder.oom(time_us)
    known = {
        name: value
        for name, value in msgspec.structs.asdict(failure).items()
        if name not in ("time_us", "positions", "device", "where")
    }
    return Failure(
        time_us=time_us,
        event=place if event is None else event,
        step=step,
        where=(None if event is None else finder.line(event)) or failure.where,
        **known,
    )
