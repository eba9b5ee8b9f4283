"""The guard at work in one process: hears of each call, judges it, and, if it may, does not carry it out."""

from __future__ import annotations

import gc
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from hotbed.recording.arrival import when_torch_arrives
from hotbed.recording.beginning import when_cuda_begins
from hotbed.recording.current import current
from hotbed.recording.device_memory import memory_seen
from hotbed.recording.guard.cache_calls import CacheCalls, Call, Kind, as_row
from hotbed.recording.guard.exams import Exams
from hotbed.recording.guard.leaks import Leaks
from hotbed.recording.guard.levels import Levels, levels, room
from hotbed.recording.guard.postmortem import Postmortem
from hotbed.recording.guard.ring import Ring
from hotbed.recording.guard.rules import is_near, judge
from hotbed.recording.guard.sites import Site, Sites
from hotbed.recording.guard.stepping import Steps
from hotbed.recording.guard.words import say, useless_words
from hotbed.recording.guard.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.recording.guard.calling import Caller

Policy = Literal["warn", "skip", "off"]
PROBE_EVERY: Final = 50
"""Of the calls that are skipped one in so many is carried out, to see whether it would help by now."""
_CROWD: Final = 0.05
"""share of the device from which on other processes count; a desktop takes less"""
_CROWD_S: Final = 5.0
"""NVML is asked no more often: it takes a millisecond"""


@dataclass(frozen=True)
class Options:
    """`idle`: seconds without work after which the cache is emptied in any case. `folder`: for post-mortem files."""

    policy: Policy = "warn"
    idle: float = 5.0
    leaks: bool = True
    postmortem: bool = True
    stacks: bool = False
    folder: str = "."


class Running:
    """One guard. Nothing that fails within reaches the program: it ends the guard, with a line on stderr."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.sites = Sites()
        self.steps: Steps | None = None
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._torch: Any = None
        self._calls: CacheCalls | None = None
        self._exams: Exams | None = None
        self._work: Work | None = None
        self._announced = False
        self._owed = False
        """a call was skipped, and nothing has emptied the cache since"""
        self._near = False
        self._crowded: tuple[float, bool] = (-_CROWD_S, False)
        self._ring: Ring | None = None
        self.postmortem: Postmortem | None = None
        self.leaks: Leaks | None = None
        self.stopped = False
        when_torch_arrives(self._follow)

    def _follow(self, torch: Any) -> None:
        if self.stopped:
            return
        self._torch = torch
        self._exams = Exams(torch)
        self._calls = CacheCalls(torch, self._guarded(self._told), self._guarded(self._skips, False))
        self.steps = Steps(torch, self._guarded(self._stepped))
        if self.options.postmortem:
            path = Path(self.options.folder) / f"hotbed-oom-{os.getpid()}.hbt"
            self.postmortem = Postmortem(torch, path)
        if self.options.leaks:
            self.leaks = Leaks(torch)
        self._ring = Ring(torch)
        when_cuda_begins(torch, self._guarded(self._begin))

    def _begin(self) -> None:
        """CUDA is about to be used."""
        if self.options.stacks and current() is None and self._ring is not None:
            self._ring.begin()
        if self.postmortem is not None:
            self.postmortem.begin()

    def stop(self) -> None:
        """Puts everything back; a second call does nothing."""
        self.stopped = True
        for part in (self._calls, self.steps, self._work, self.postmortem, self.leaks, self._ring):
            if part is not None:
                part.stop()

    def loading(self, size_bytes: int) -> None:
        """A load of so many bytes comes next: what was skipped is made up for where it would not fit, and the next call
        of empty_cache() is carried out."""
        with self._lock:
            self._announced = True
            if self._owed and self._torch is not None:
                device = self._torch.cuda.current_device()
                if room(self._torch, device).free_bytes < size_bytes:
                    self._make_up()

    def judgement(self, site: Site) -> str:
        """What the guard thinks of `site` now."""
        return judge(site, gc.isenabled())

    # --- calls

    def _skips(self, kind: Kind, by: Caller, now: Levels) -> bool:
        with self._lock:
            assert self._exams is not None
            site = self.sites.find(kind, by)
            if kind == "gc.collect":
                return self._may_skip(site)
            self._exams.close()
            self._near = self._is_near(now)
            if self._may_skip(site) and not self._is_needed():
                self._owed = True
                return True
            self._announced = self._owed = False
            self._exams.before(site, probe=site.skipped > 0)
            return False

    def _may_skip(self, site: Site) -> bool:
        """Whether the site is known to be useless, and not due for a probe."""
        if self.options.policy != "skip" or not site.warned or self.judgement(site) != "useless":
            return False
        return site.skipped_in_a_row < PROBE_EVERY - 1

    def _is_needed(self) -> bool:
        rested = self._work is not None and self._work.idle_s() >= self.options.idle
        return self._announced or self._near or rested

    def _is_near(self, now: Levels) -> bool:
        return any(
            is_near(room(self._torch, device), self._is_crowded(device))
            for device, level in now.items()
            if level.reserved_bytes
        )

    def _is_crowded(self, device: int) -> bool:
        at, crowded = self._crowded
        if time.monotonic() - at > _CROWD_S:
            others = memory_seen(self._torch, device).others_bytes or 0
            crowded = others > _CROWD * self._torch.cuda.get_device_properties(device).total_memory
            self._crowded = time.monotonic(), crowded
        return crowded

    def _told(self, call: Call) -> None:
        with self._lock:
            assert self._exams is not None
            steps = 0 if self.steps is None else self.steps.count
            if call.kind == "empty_cache" and not call.skipped:
                self._exams.after()
            site = self.sites.add(call, steps, self._near and call.kind == "empty_cache")
            if self._work is None:
                self._work = Work(lambda: levels(self._torch), self.options.idle, self._guarded(self._rests))
            if call.skipped:
                _note(call)
            if not site.warned and self.judgement(site) == "useless":
                site.warned = True
                if self.options.policy != "off":
                    say(useless_words(site, will_skip=self.options.policy == "skip"))

    def _rests(self) -> None:
        """On the guard's thread: nothing was allocated for a while."""
        with self._lock:
            self.sites.rested()
            if self._owed:
                self._make_up()

    def _make_up(self) -> None:
        """Carries out a call that was skipped."""
        self._owed = False
        assert self._calls is not None
        self._calls.empty()

    # --- steps

    def _stepped(self, _count: int) -> None:
        """A step is over."""
        if self.leaks is not None:
            self.leaks.stepped()

    def _guarded(self, act: Callable[..., Any], otherwise: Any = None) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if os.getpid() != self._owner or self.stopped:
                return otherwise
            try:
                return act(*arguments)
            except Exception as error:  # noqa: BLE001 - a fault of the guard must not be the program's
                say(f"ends here, a fault of its own: {type(error).__name__}: {error}")
                self.stop()
                return otherwise

        return call


def _note(call: Call) -> None:
    """Tells the recorder, if there is one, of a call that it does not see."""
    recorder = current()
    if recorder is None:
        return
    recorder.note("calls", as_row(call))
