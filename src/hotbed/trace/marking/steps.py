"""Steps of a recorded trace: what torch's counters and the events say about each stretch of the program."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace.model import Action
from hotbed.trace.overview import curves
from hotbed.trace.recorded import Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotbed.trace.marking.counts import Counters
    from hotbed.trace.marking.phases import Stretch
    from hotbed.trace.model import Trace

_TAKEN = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_GIVEN = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


def steps_of(trace: Trace, stretches: Sequence[Stretch], gaps: Sequence[int] = ()) -> tuple[Step, ...]:
    """A Step for each of `stretches`; `gaps` are the events before which others were not recorded, ascending.

    torch's counters at both ends count; where they were not read, the events do, unless there is a gap among them.
    """
    reader = _Events(trace, gaps)
    numbers = _numbers(stretches)
    return tuple(_step(reader, stretch, number) for stretch, number in zip(stretches, numbers, strict=True))


def _numbers(stretches: Sequence[Stretch]) -> Iterator[int]:
    training = 0
    for stretch in stretches:
        yield training
        training += stretch.phase == "train"


def _step(events: _Events, stretch: Stretch, number: int) -> Step:
    first, end = stretch.first, stretch.end
    told = _between(first.counters, end.counters) or events.counts(stretch)
    peaks = [
        grown if grown is not None else events.peak(curve, stretch)
        for curve, grown in zip(events.curves, _grown(events, stretch), strict=True)
    ]
    lost = first.in_gap or end.in_gap
    return Step(
        phase=stretch.phase,
        number=number,
        first_event=None if lost else stretch.first_event,
        end_event=None if lost else stretch.end_event,
        begun_us=first.time_us,
        end_us=end.time_us,
        peak_allocated_bytes=peaks[0],
        peak_reserved_bytes=peaks[1],
        **told,
    )


def _between(first: Counters | None, end: Counters | None) -> dict[str, int | None] | None:
    if first is None or end is None:
        return None
    return {
        "allocated_bytes": end.allocated_bytes,
        "reserved_bytes": end.reserved_bytes,
        "allocations": end.allocations - first.allocations,
        "device_mallocs": end.device_mallocs - first.device_mallocs,
        "device_frees": end.device_frees - first.device_frees,
        "retries": end.retries - first.retries,
    }


def _grown(events: _Events, stretch: Stretch) -> tuple[int | None, int | None]:
    """Peaks of the process that were reached within `stretch`, as torch counted them."""
    first, end = stretch.first.counters, stretch.end.counters
    if end is None:
        return None, None
    if first is not None:
        before = first.peak_allocated_bytes, first.peak_reserved_bytes
    elif events.whole(stretch) or (before_it := events.peaks_before(stretch)) is None:
        return None, None
    else:
        before = before_it
    peaks = end.peak_allocated_bytes, end.peak_reserved_bytes
    return tuple(peak if peak > was else None for peak, was in zip(peaks, before, strict=True))  # type: ignore[return-value]


class _Events:
    """What the events of a trace tell about a stretch of them."""

    def __init__(self, trace: Trace, gaps: Sequence[int]) -> None:
        found = curves(trace)
        self.curves = found.allocated, found.reserved
        action = trace.events.action
        self._gaps = gaps
        self._counted = {
            name: np.concatenate(([0], np.isin(action, kinds).cumsum()))
            for name, kinds in (
                ("allocations", (Action.ALLOC,)),
                ("device_mallocs", _TAKEN),
                ("device_frees", _GIVEN),
            )
        }

    def whole(self, stretch: Stretch) -> bool:
        """Whether all its events are there."""
        if stretch.first.in_gap or stretch.end.in_gap:
            return False
        at = bisect_left(self._gaps, stretch.first_event + 1)
        return at == len(self._gaps) or self._gaps[at] >= stretch.end_event

    def peaks_before(self, stretch: Stretch) -> tuple[int, int] | None:
        """Of both curves before it; None where something is missing there."""
        if stretch.first.in_gap or bisect_left(self._gaps, stretch.first_event + 1):
            return None
        allocated, reserved = (int(curve[: stretch.first_event].max(initial=0)) for curve in self.curves)
        return allocated, reserved

    def counts(self, stretch: Stretch) -> dict[str, int | None]:
        """Fields of Step; bytes are those that the curves have at its end."""
        first, end = stretch.first_event, stretch.end_event
        found: dict[str, int | None] = {"retries": None}
        for name, counted in self._counted.items():
            found[name] = int(counted[end] - counted[first]) if self.whole(stretch) else None
        for name, curve in zip(("allocated_bytes", "reserved_bytes"), self.curves, strict=True):
            found[name] = None if stretch.end.in_gap or not len(curve) else int(curve[max(end - 1, 0)])
        return found

    def peak(self, curve: np.ndarray[tuple[int], np.dtype[np.int64]], stretch: Stretch) -> int | None:
        """Highest value within it, what was there when it began included."""
        if not self.whole(stretch) or not len(curve):
            return None
        first = max(stretch.first_event - 1, 0)
        return int(curve[first : max(stretch.end_event, first + 1)].max())
