"""Records this process into a file: follows its steps, reads torch's history in windows, notes what else is seen."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from hotbed.recording.between import Between
from hotbed.recording.device_memory import memory_seen
from hotbed.recording.failures import Failures
from hotbed.recording.followed import Followed, followed
from hotbed.recording.gc_watch import GcWatch
from hotbed.recording.guard.cache_calls import CacheCalls, Call, as_row
from hotbed.recording.holders import Holders
from hotbed.recording.raw_file import RawFile
from hotbed.recording.schedule import LongStretch, Plan, Schedule
from hotbed.recording.window import read_window

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TICK_S = 0.25
_FIRST_TICK_S = 0.01
"""in the beginning"""
_NO_STEP_S = 5.0
"""A program that has not stepped for so long is read between its steps too."""
_LOOK_S = 10.0
_LOOK_SHARE = 500
"""Modules are looked at before a reading, at most once in 10 s and in so many times what a look takes."""
_FEW_OOMS = 5
_OOM_PAUSE_S = 10.0


@dataclass(frozen=True)
class Options:
    """`steps`: `enough` is called after so many. `facts`: what the file says of itself at its beginning."""

    plan: Plan = field(default_factory=Plan)
    steps: int | None = None
    enough: Callable[[], None] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Recorder:
    """One recording of this process. Make it before or after torch; begin() once CUDA is about to be used.

    Raises OSError where the file cannot be made. Afterwards nothing is raised into the program: where the file cannot
    grow, recording ends with one line on stderr.
    """

    def __init__(self, path: Path, options: Options) -> None:
        self.path, self._options = path, options
        self._file = RawFile(path, options.facts)
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._schedule = Schedule(options.plan, time.monotonic())
        self._followed: Followed | None = None
        self._torch: Any = None
        self._holders: Any = None
        self._failures: Failures | None = None
        self._gc_watch: GcWatch | None = None
        self._cache_calls: CacheCalls | None = None
        self._skipped_at = 0.0
        self._ended_by: BaseException | None = None
        self._long_stretch = LongStretch()
        self._between = Between(self._look_within)
        self._rows: dict[str, list[Any]] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._stepped_at = time.monotonic()
        self._looked_at, self._look_s = time.monotonic(), 0.0
        self._steps = 0
        self._optimizers = 0
        self._by_hand = False
        self._late = False
        self._waited_s = 0.0
        self.begun_us = time.time_ns() // 1000
        self.closed = False
        self._note_start()

    def _note_start(self) -> None:
        self._file.seen({"begun_us": self.begun_us, "time_us": self.begun_us, "pid": self._owner})

    def follow(self, torch: Any) -> bool:
        """torch is there: follows what the program does with it. False if this recorder is over, or elsewhere."""
        if self._elsewhere():
            return False
        self._torch = torch
        self._cache_calls = CacheCalls(torch, self._emptied)
        plan = self._options.plan
        self._followed = followed(torch, None if plan.whole else plan.ring_entries)
        self._followed.follower.after_step = self._after_step
        if self._options.enough is not None:
            self._followed.follower.end_after(self._options.steps, self._options.enough)
        self._file.meta({"torch_version": torch.__version__})
        return True

    def begin(self) -> None:
        """CUDA is about to be initialised, or is already: the history begins."""
        if self._elsewhere() or self._followed is None or self._thread is not None:
            return
        history = self._followed.history
        self._late = any(history.counters(device)[0] for device in history.devices())
        history.start()
        if history.missing:
            self._file.meta(
                {
                    "missing": [
                        "torch keeps no history here (its backend, or hotbed fit), so there are no events"
                    ]
                }
            )
        else:
            history.clear()
        self._look_for_devices()
        self._holders = Holders(self._torch)
        self._failures = Failures(self._torch, self._out_of_memory)
        self._gc_watch = GcWatch(self._positions, self._collected)
        self._followed.follower.mark("begin")
        self._thread = threading.Thread(target=self._watch, name="hotbed recorder", daemon=True)
        self._thread.start()

    def note(self, kind: str, row: dict[str, Any]) -> None:
        """Adds a row to what is seen: "calls" (CacheCall), "samples", "failures"; time and place are filled in."""
        if not self._elsewhere():
            if row.get("skipped"):
                self._skipped_at = time.perf_counter()
            full = {"time_us": time.time_ns() // 1000, "positions": self._positions(), **row}
            with self._lock:
                self._rows.setdefault(kind, []).append(full)

    def _emptied(self, call: Call) -> None:
        """The program emptied the cache, or collected garbage."""
        with self._guarded():
            # A guard within this watcher did not carry it out, and has said so.
            if self._skipped_at < call.begun:
                self.note("calls", as_row(call))

    def _collected(self, row: dict[str, Any]) -> None:
        """Python collected garbage."""
        if self._cache_calls is None or not self._cache_calls.collecting:
            self.note("calls", row)

    def step(self) -> None:
        """A step is over, says the program; optimizers no longer count."""
        followed = self._followed
        if self._elsewhere() or followed is None:
            return
        if not self._by_hand:
            self._by_hand, self._steps = True, 0
        with self._lock:
            self._rows.setdefault("by_hand", []).append(followed.follower.mark("by hand"))
        self._step_over()
        if self._steps == self._options.steps and self._options.enough is not None:
            self._options.enough()

    def stop(self) -> None:
        """Writes what is left and closes the file; a second call does nothing."""
        if self._elsewhere():
            return
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self._lock, self._guarded():
            if self.closed:
                return
            if self._thread is not None:
                self._last_look()
            self._flush({"ended": True})
            self._file.close()
        self._close()

    def _last_look(self) -> None:
        assert self._followed is not None
        follower = self._followed.follower
        follower.detailed = True
        follower.look()
        follower.mark("end")
        self._optimizers = max(self._optimizers, follower.optimizers())
        self._sample(garbage=True)
        self._read()
        seen = {device: memory_seen(self._torch, device) for device in self._followed.clock.devices}
        self._rows["processes"] = [[device, found.process_bytes] for device, found in seen.items()]

    def _close(self) -> None:
        self.closed = True
        self._ended_by = None
        self._stop.set()
        atexit.unregister(self.stop)
        if self._gc_watch is not None:
            self._gc_watch.stop()
        if self._cache_calls is not None:
            self._cache_calls.stop()
        if self._failures is not None:
            self._failures.close()
        if self._followed is not None:
            self._followed.release()

    def raised(self, error: BaseException | None) -> None:
        """`error` ends what is recorded; an out-of-memory error gives the last failure its words."""
        self._ended_by = error
        memory = getattr(self._torch, "OutOfMemoryError", None)
        if memory is not None and isinstance(error, memory) and self._failures and self._failures.count:
            with self._lock:
                self._rows.setdefault("messages", []).append([self._failures.count - 1, str(error)])

    def _elsewhere(self) -> bool:
        return self.closed or os.getpid() != self._owner

    def _positions(self) -> list[Any]:
        return [] if self._followed is None else self._followed.clock.positions()

    def _after_step(self) -> None:
        """An optimizer has stepped."""
        assert self._followed is not None
        if self._by_hand or self._elsewhere():
            return
        if self._followed.follower.rounds.complete > self._steps:
            self._step_over()

    def _step_over(self) -> None:
        self._steps += 1
        self._stepped_at = time.monotonic()
        with self._lock, self._guarded():
            if not self._elsewhere():
                assert self._followed is not None
                self._long_stretch.begins(self._followed.clock.made)
                if self._schedule.wants_sample(self._stepped_at, self._steps):
                    self._sample()
                self._act(self._steps)

    def _watch(self) -> None:
        """On the recorder's own thread."""
        while not self._stop.wait(_FIRST_TICK_S if self._schedule.beginning else _TICK_S):
            if not self._lock.acquire(blocking=False):
                continue
            try:
                with self._guarded():
                    if not self._elsewhere():
                        self._look_for_devices()
                        self._tick()
            finally:
                self._lock.release()

    def _tick(self) -> None:
        assert self._followed is not None
        now = time.monotonic()
        self._followed.clock.positions()
        if self._schedule.may_sample(now) and self._long_stretch.is_due(self._followed.clock.made):
            self._between.ask()
        if now - self._stepped_at > _NO_STEP_S or self._schedule.urgent(now, self._followed.clock.pending()):
            self._act(None)

    def _look_within(self) -> None:
        """On the main thread, wherever it is: a stretch without steps has become long."""
        with self._guarded():
            if not self._elsewhere() and self._followed is not None:
                self._long_stretch.looked(self._followed.clock.made)
                self._sample()

    def _act(self, step: int | None) -> None:
        assert self._followed is not None
        now, pending = time.monotonic(), self._followed.clock.pending()
        what = self._schedule.decide(now, pending, step)
        if what == "read":
            self._read()
        elif what == "clear":
            begun = self._clock()
            self._followed.history.clear()
            self._followed.clock.cleared()
            taken = self._clock() - begun
            self._schedule.was_cleared(taken)
            self._waited_s += taken
        if step is not None or not self._steps:
            self._detail()
        elif self._schedule.state == "window":
            self._followed.follower.detailed = True
        self._followed.clock.every = self._schedule.beginning

    def _detail(self) -> None:
        """Decides whether addresses are noted in the step that begins now: in all of it or nowhere."""
        assert self._followed is not None
        follower = self._followed.follower
        self._schedule.were_detailed(follower.take_seconds(), noted=follower.detailed)
        follower.detailed = self._schedule.wants_details(time.monotonic())

    def _read(self) -> None:
        """Writes a window, and the rows that belong to it."""
        assert self._followed is not None
        if self._followed.history.missing or not self._torch.cuda.is_initialized():
            self._flush({})
            return
        begun = self._clock()
        if time.monotonic() - self._looked_at > max(_LOOK_S, self._look_s * _LOOK_SHARE):
            self._followed.follower.look()
            self._looked_at = time.monotonic()
            self._look_s = self._clock() - begun
        self._look_for_devices()
        found = read_window(self._torch, self._followed.history, self._followed.clock.devices)
        self._followed.clock.cleared()
        facts = {"time_us": found.time_us, "ends": found.ends, "late": self._late}
        self._file.window(facts, found.snapshot)
        self._flush({})
        taken = self._clock() - begun
        self._waited_s += taken
        self._schedule.was_read(time.monotonic(), taken, found.entries)

    def _clock(self) -> float:
        """Seconds that the program waits for: on the recorder's own thread, while the program goes on, those of its work."""
        on_own = threading.current_thread() is self._thread
        return time.thread_time() if on_own else time.monotonic()

    def _flush(self, more: dict[str, Any]) -> None:
        followed = self._followed
        rows: dict[str, Any] = {"time_us": time.time_ns() // 1000, "waited_s": self._waited_s, **more}
        if followed is not None:
            follower = followed.follower
            marks, notes, stepped = follower.take()
            regular = follower.rounds.regular()
            rows |= {
                "marks": [[mark.kind, mark.time_us, mark.positions] for mark in marks],
                "notes": [asdict(note) for note in notes],
                "stepped": stepped,
                "optimizers": max(self._optimizers, len(regular)),
                "regular": regular,
                "trouble": follower.trouble,
            }
        with self._lock:
            rows |= self._rows
            self._rows = {}
        self._file.seen(rows)

    def _sample(self, *, garbage: bool = False) -> None:
        if self._holders is None:
            return
        found = self._holders.sample(garbage=garbage, ended_by=self._ended_by)
        self._waited_s += self._holders.seconds
        self._schedule.was_sampled(self._holders.seconds)
        devices = {device: [asdict(row) for row in rows] for device, rows in found.items()}
        if devices:
            self.note("samples", {"devices": devices})

    def _out_of_memory(self, row: dict[str, Any], count: int, since_s: float) -> None:
        """torch is about to raise; the thread is the one that asked for memory."""
        if self._elsewhere():
            return
        with self._lock, self._guarded():
            self.note("failures", row)
            if count <= _FEW_OOMS or since_s > _OOM_PAUSE_S:
                if self._followed is not None:
                    self._followed.follower.look()
                self._sample(garbage=True)
                self._read()

    def _look_for_devices(self) -> None:
        """Devices that have been used since the last look."""
        assert self._followed is not None
        for device in self._followed.clock.look():
            properties = self._torch.cuda.get_device_properties(device)
            self._file.meta(
                {"device": device, "device_name": properties.name, "total_bytes": properties.total_memory}
            )

    def _guarded(self) -> _Guard:
        return _Guard(self)

    def fail(self, error: Exception) -> None:
        """Ends the recording; the program goes on."""
        print(f"hotbed: recording to {self.path} ends here: {error}", file=sys.stderr)  # noqa: T201
        self._close()


class _Guard:
    """What fails within ends the recording, and not the program."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._recorder.fail(error)
        return True
