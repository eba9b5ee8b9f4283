"""Looks, now and then, at what a call of empty_cache() returned and at what was taken from the driver until the next one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from hotbed.recording.guard.segments import Segment, gone, not_served, segments

if TYPE_CHECKING:
    from hotbed.recording.guard.sites import Site

    Map = dict[tuple[Any, ...], Segment]

_FIRST_CALL: Final = 3
"""Before it the program warms up: cuDNN tries plans, caches fill."""
_RARER: Final = 1.5
_MOST_SHARE: Final = 0.003
"""of the time, for looks beyond the first two of a site"""


class Exams:
    """One at a time; its three memory maps cost milliseconds where there are thousands of blocks."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._next: dict[int, int] = {}
        """id of a site → the number of its call to look into"""
        self._begun: tuple[Site, Map] | None = None
        self._open: tuple[Site, list[Segment], Map] | None = None
        self._since, self.spent_s = time.perf_counter(), 0.0

    def before(self, site: Site, *, probe: bool) -> None:
        """`site` is about to empty the cache. `probe`: look at it in any case."""
        if probe or self._due(site):
            self._begun = site, self._map()

    def after(self) -> None:
        """It has."""
        if self._begun is None:
            return
        (site, before), self._begun = self._begun, None
        after = self._map()
        self._open = site, gone(before, after), after

    def close(self) -> None:
        """The cache is about to be emptied again, or that is asked for."""
        if self._open is None:
            return
        (site, returned, after), self._open = self._open, None
        now = self._map()
        reserved = sum(segment.size_bytes for segment in now.values())
        if returned:
            site.missing.append((not_served(returned, gone(now, after)), reserved))

    def _due(self, site: Site) -> bool:
        number = site.calls + 1
        due = self._next.setdefault(id(site), _FIRST_CALL)
        early = len(site.missing) < 2
        if number < due or not (early or self.spent_s <= _MOST_SHARE * (time.perf_counter() - self._since)):
            return False
        self._next[id(site)] = number + 1 if early else int(number * _RARER) + 1
        return True

    def _map(self) -> Map:
        begun = time.perf_counter()
        found = segments(self._torch)
        self.spent_s += time.perf_counter() - begun
        return found
