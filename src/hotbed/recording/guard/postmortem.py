"""What is kept of an out-of-memory error until it is known whether the program survives it, and the file made of it."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from hotbed.recording.current import current
from hotbed.recording.failures import Failures
from hotbed.recording.files import path_of_rank, rank
from hotbed.recording.guard.levels import counters
from hotbed.recording.guard.situation import situation
from hotbed.recording.guard.words import line_words, say
from hotbed.recording.holders import Holders
from hotbed.recording.raw_file import RawFile
from hotbed.recording.snapshot import snapshot as take_snapshot
from hotbed.trace.verdict import Situation, Verdict, judge
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from hotbed.trace.recorded import Holding

_WHOLE: Final = 3
"""Errors of which everything is kept: torch itself runs into some while it tries plans, and programs into more."""
_PAUSE_S: Final = 10.0
_OWNERS: Final = 3
_HOLDING_S: Final = 1.0


@dataclass(frozen=True)
class Kept:
    """One error as torch raised it. `snapshot` is that of torch as a pickle, None where it was not taken."""

    at: float
    row: dict[str, Any]
    facts: Situation
    holdings: tuple[Holding, ...]
    snapshot: bytes | None
    first: list[list[int] | None]
    """by device: counters at the beginning of the history in `snapshot`; None for one that was never allocated on"""
    last: list[list[int] | None]
    """and at its end"""
    recording: Path | None
    """of the recorder that was at work, and wrote it down"""


class Postmortem:
    """From begin() on. Speaks only of an error that ends the program, or one of its threads."""

    def __init__(self, torch: Any, path: Path) -> None:
        self._torch, self._path = torch, path
        self._holders = Holders(torch)
        self._failures: Failures | None = None
        self._kept: Kept | None = None
        self._hooks: list[tuple[Any, Any, Any]] = []
        self._stopped = False
        self._owner = os.getpid()
        self.count = 0

    def begin(self) -> None:
        """CUDA is about to be used: errors are heard of from now on."""
        self._failures = Failures(self._torch, self._raised)
        hooked: tuple[tuple[Any, Any], ...] = ((sys, self._uncaught), (threading, self._uncaught_in_thread))
        for place, hook in hooked:
            before = place.excepthook
            ours = hook(before)
            place.excepthook = ours
            self._hooks.append((place, before, ours))

    def stop(self) -> None:
        """Puts the hooks back; a second call does nothing."""
        self._stopped = True
        if self._failures is not None:
            self._failures.close()
        while self._hooks:
            place, before, ours = self._hooks.pop()
            if place.excepthook is ours:
                place.excepthook = before

    # --- as torch raises

    def _raised(self, row: dict[str, Any], count: int, since_s: float) -> None:
        """On the thread that asked for memory; the allocator is not locked."""
        if self._stopped or os.getpid() != self._owner:
            return
        self.count = count
        whole = count <= _WHOLE or since_s > _PAUSE_S
        try:
            self._kept = self._keep(row, whole)
        except Exception as error:  # noqa: BLE001 - the program's own error is what matters
            say(f"the memory map could not be read: {type(error).__name__}: {error}")

    def _keep(self, row: dict[str, Any], whole: bool) -> Kept:
        device = row["device"]
        row = {"time_us": time.time_ns() // 1000, "positions": [], **row}
        if not whole:
            return Kept(time.monotonic(), row, _facts(row), (), None, [], [], _recording())
        stream = self._torch.cuda.current_stream(device).cuda_stream
        snapshot = take_snapshot(self._torch)
        facts = situation(row, snapshot["segments"], stream)
        held = self._holders.sample(_HOLDING_S, garbage=True).get(device, ())
        traces = snapshot["device_traces"]
        last = [counters(self._torch, number) for number in range(len(traces))]
        first = [_before(end, entries) for end, entries in zip(last, traces, strict=True)]
        kept = {name: value for name, value in snapshot.items() if name in _KEPT}
        return Kept(
            time.monotonic(), row, facts, held, pickle.dumps(kept, protocol=4), first, last, _recording()
        )

    # --- as the program ends

    def _uncaught(self, before: Any) -> Callable[..., None]:
        def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            before(kind, error, trace)
            self._tell(error)

        return excepthook

    def _uncaught_in_thread(self, before: Any) -> Callable[..., None]:
        def excepthook(arguments: Any) -> None:
            before(arguments)
            self._tell(arguments.exc_value)

        return excepthook

    def _tell(self, error: BaseException | None) -> None:
        if self._stopped or os.getpid() != self._owner or not _is_out_of_memory(self._torch, error):
            return
        kept = self._kept
        try:
            if kept is None:
                say(
                    "out of memory, but not in torch's allocator: a library or the driver asked for the memory"
                )
            else:
                say(self._words(kept, judge(kept.facts), self._write(kept, str(error))))
        except Exception as fault:  # noqa: BLE001 - the program's own error is what matters
            say(f"no verdict: {type(fault).__name__}: {fault}")

    def _words(self, kept: Kept, verdict: Verdict, path: Path | None) -> str:
        lines = [f"out of memory: {verdict.title} ({verdict.code}, {verdict.confidence})"]
        lines += [f"- {sentence}" for sentence in verdict.sums]
        lines += [f"- held by {_owner(one)}" for one in kept.holdings[:_OWNERS]]
        lines.append(f"fix: {verdict.fix}")
        if path is not None:
            lines.append(f"post-mortem: {path} (hotbed findings {path}; hotbed report {path})")
        elif kept.recording is not None:
            lines.append(f"the recording {kept.recording} has the rest")
        return "\n  ".join(lines)

    def _write(self, kept: Kept, message: str) -> Path | None:
        """The file of `kept`; None where a recorder writes one, or nothing but numbers was kept."""
        if kept.snapshot is None or kept.recording is not None:
            return None
        number = rank()
        path = path_of_rank(self._path, number)
        path.unlink(missing_ok=True)
        file = RawFile(path, {"rank": number, "torch_version": self._torch.__version__})
        used = [device for device, end in enumerate(kept.last) if end is not None]
        for device in used:
            properties = self._torch.cuda.get_device_properties(device)
            file.meta(
                {"device": device, "device_name": properties.name, "total_bytes": properties.total_memory}
            )
        ends = {device: (kept.last[device] or [])[:2] for device in used}
        file.window({"time_us": kept.row["time_us"], "ends": ends}, kept.snapshot)
        file.seen(_rows(kept, message))
        file.close()
        return path


_KEPT = ("segments", "device_traces", "allocator_settings")


def _recording() -> Path | None:
    recorder = current()
    return None if recorder is None else recorder.path


def _facts(row: dict[str, Any]) -> Situation:
    return situation(row, (), 0)


def _before(end: list[int] | None, entries: list[dict[str, Any]]) -> list[int] | None:
    """Counters before the history in `entries`. A full ring has lost what came before."""
    if end is None:
        return None
    made = sum(entry["action"] == "alloc" for entry in entries)
    freed = sum(entry["action"] == "free_requested" for entry in entries)
    return [end[0] - made, end[1] - freed, *end[2:]]


def _rows(kept: Kept, message: str) -> dict[str, Any]:
    """What the recording says beside the history."""
    now_us = kept.row["time_us"]
    held = {str(kept.row["device"]): [asdict(one) for one in kept.holdings]}
    return {
        "begun_us": now_us,
        "time_us": now_us,
        "pid": os.getpid(),
        "marks": [["begin", now_us, kept.first], ["end", now_us, kept.last]],
        "failures": [{**kept.row, "positions": kept.last, "message": message}],
        "samples": [{"time_us": now_us, "positions": kept.last, "devices": held}],
        "ended": True,
    }


def _owner(holding: Holding) -> str:
    where = "" if holding.where is None else f", filled at {line_words(holding.where)}"
    return f"{holding.owner}: {format_size(holding.bytes)} in {holding.tensors} tensors{where}"


def _is_out_of_memory(torch: Any, error: BaseException | None) -> bool:
    kind = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    return isinstance(error, kind)
