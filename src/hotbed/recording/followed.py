"""The hooks of this process in torch: made once, since they cannot be taken out, and lent to one recorder at a time."""

from __future__ import annotations

import sys
from typing import Any

from hotbed.recording.following import Follower
from hotbed.recording.history import History

_made: list[Followed] = []


class Clock:
    """Where the history of each device is. `every`: look at all devices, not at those alone that are known to be used."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.devices: list[int] = []
        self.every = True
        self._last: dict[int, list[int]] = {}
        self._cleared: dict[int, list[int]] = {}

    def positions(self) -> list[list[int] | None]:
        """By device: the fields of hotbed.trace.marking.counts.Counters; None where nothing was ever allocated."""
        found: list[list[int] | None] = []
        for device in self._history.devices() if self.every else sorted(self.devices):
            counters = self._history.counters(device)
            found += [None] * (device - len(found))
            if counters[0]:
                self._last[device] = counters
                found.append(counters)
            else:
                found.append(None)
        return found

    @property
    def made(self) -> int:
        """Allocations of all devices so far, as of the last reading."""
        return sum(counters[0] for counters in self._last.values())

    def pending(self) -> int:
        """About how many entries torch holds, as of the last reading; a free makes two."""
        nothing = [0, 0]
        return sum(
            counters[0]
            - self._cleared.get(device, nothing)[0]
            + 2 * (counters[1] - self._cleared.get(device, nothing)[1])
            for device, counters in self._last.items()
        )

    def cleared(self) -> None:
        """The history is empty as of now."""
        self.positions()
        self._cleared = dict(self._last)

    def look(self) -> list[int]:
        """Devices that came into use since the last look."""
        fresh = [
            device
            for device in self._history.devices()
            if device not in self.devices and self._history.counters(device)[0]
        ]
        self.devices += fresh
        return fresh


class Followed:
    """torch's history, and the follower of its training loop."""

    def __init__(self, torch: Any) -> None:
        self.history = History(torch, stacks=True)
        self.clock = Clock(self.history)
        self.follower = Follower(torch, self.clock, None, lambda: None)

    def lend(self, entries: int) -> None:
        """A recorder begins, that keeps so many entries in torch."""
        self.history.entries = entries
        self.history.keep_on()
        self.clock.devices, self.clock.every = [], True
        self.follower.begin_anew()

    def release(self) -> None:
        """It ends: nothing is followed any more."""
        self.follower.active = False
        self.follower.after_step = None
        self.history.stop()


def followed(torch: Any, entries: int | None) -> Followed:
    """That of this process; `entries` None: torch keeps all of them."""
    if not _made:
        _made.append(Followed(torch))
    _made[0].lend(sys.maxsize if entries is None else entries)
    return _made[0]
