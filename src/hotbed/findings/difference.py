"""Two runs, or one run under two settings, side by side: their curves, their peaks, and who holds what there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.errors import UsageError
from hotbed.replaying import replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from hotbed.findings.case import Case, Share
    from hotbed.replaying import Outcome

_POINTS: Final = 1000
_MOST_ROWS: Final = 200


@dataclass(frozen=True)
class Side:
    """One of the two. `at` is the place on the common axis, from 0 to 1, of each point of the two curves (bytes)."""

    name: str
    at: tuple[float, ...]
    allocated_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A figure of both sides, in bytes; `kind` is "peak", "free", "category" or "line"."""

    kind: str
    name: str
    first_bytes: int
    second_bytes: int


@dataclass(frozen=True)
class Difference:
    """`note` says how the axis was laid out and what the rows are of."""

    sides: tuple[Side, Side]
    rows: tuple[Row, ...]
    note: str


def between_runs(names: tuple[str, str], cases: tuple[Case, Case]) -> Difference:
    """What differs between two recorded runs; lines and categories at the allocated peak of each."""
    first, second = cases
    steps = min(len(first.train_steps), len(second.train_steps))
    peaks = [
        ("allocated", first.allocated_at(first.peak), second.allocated_at(second.peak)),
        ("reserved", first.reserved_at(first.reserved_peak), second.reserved_at(second.reserved_peak)),
    ]
    aligned = (
        f"Both are aligned at the beginnings of {steps} steps"
        if steps
        else "The axis is the share of the events"
    )
    return Difference(
        sides=(_recorded(names[0], first, steps), _recorded(names[1], second, steps)),
        rows=(
            *(Row("peak", f"peak {name}", a, b) for name, a, b in peaks),
            *_holders(first, first.peak, second, second.peak),
        ),
        note=f"{aligned}; lines and categories are those at the highest allocated level of each.",
    )


def between_settings(case: Case, settings: tuple[str, str]) -> Difference:
    """What two settings make of one trace, by replay; lines and categories at the reserved peak under each.

    Raises UsageError where a replay gives no curve (cudaMallocAsync), and what hotbed.replay raises.
    """
    outcomes = [replay(case.trace, text) for text in settings]
    for outcome in outcomes:
        if outcome.timeline is None:
            raise UsageError(
                f"a replay under {outcome.settings!r} has no timeline",
                hint="compare settings of the native backend",
            )
    first, second = outcomes
    places = [_reserved_peak(outcome) for outcome in outcomes]
    return Difference(
        sides=(_replayed(case, first), _replayed(case, second)),
        rows=(
            Row("peak", "peak reserved", first.peak_reserved_bytes, second.peak_reserved_bytes),
            Row("peak", "peak allocated", first.peak_allocated_bytes, second.peak_allocated_bytes),
            Row("peak", "peak requested", first.peak_requested_bytes, second.peak_requested_bytes),
            *_free(first, second),
            *_holders(case, places[0], case, places[1]),
        ),
        note=(
            f"Replayed with torch {first.torch_version}: {first.device_mallocs} and {second.device_mallocs} cudaMalloc "
            f"calls. The axis is the share of the events; lines and categories are those when reserved memory peaks."
        ),
    )


def _recorded(name: str, case: Case, steps: int) -> Side:
    count = len(case.trace.events)
    starts = np.unique(np.linspace(0, count, min(_POINTS, count), endpoint=False).astype(np.int64))
    if not len(starts):
        return Side(name, (), (), ())
    return Side(
        name=name,
        at=tuple(_places(case, steps, starts).tolist()),
        allocated_bytes=tuple(np.maximum.reduceat(case.curves.allocated, starts).tolist()),
        reserved_bytes=tuple(np.maximum.reduceat(case.curves.reserved, starts).tolist()),
    )


def _places(case: Case, steps: int, events: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Events on the common axis: the first `steps` steps get stretches of the same length in every run."""
    begun = [step.first_event for step in case.train_steps[:steps] if step.first_event is not None]
    knots = np.unique([0, *begun, len(case.trace.events)])
    return np.interp(events, knots, np.linspace(0, 1, len(knots)))


def _replayed(case: Case, outcome: Outcome) -> Side:
    assert outcome.timeline is not None
    timeline, count = outcome.timeline, max(len(case.trace.events), 1)
    return Side(
        name=outcome.settings or "default settings",
        at=tuple(max(event, 0) / count for event in timeline.event),
        allocated_bytes=timeline.requested_bytes,
        reserved_bytes=timeline.reserved_bytes,
    )


def _reserved_peak(outcome: Outcome) -> int:
    """The place in the trace at which reserved memory was highest."""
    assert outcome.timeline is not None
    reserved = outcome.timeline.reserved_bytes
    return outcome.timeline.event[reserved.index(max(reserved))] + 1 if reserved else 0


def _free(first: Outcome, second: Outcome) -> Iterator[Row]:
    """Free memory at the peak, by why the request there could not use it."""
    sides = [
        {free.reason: free.bytes for free in outcome.fragmentation.unusable} if outcome.fragmentation else {}
        for outcome in (first, second)
    ]
    for reason in dict.fromkeys([*sides[0], *sides[1]]):
        yield Row("free", reason, sides[0].get(reason, 0), sides[1].get(reason, 0))


def _holders(first: Case, first_place: int, second: Case, second_place: int) -> list[Row]:
    """Categories and lines that hold memory at either place, the largest difference first."""
    held = first.allocations.live_at(first_place), second.allocations.live_at(second_place)
    rows = [
        *_compared("category", first.by_category(held[0]), second.by_category(held[1])),
        *_compared("line", first.by_line(held[0]), second.by_line(held[1])),
    ]
    rows.sort(key=lambda row: (row.kind, -abs(row.second_bytes - row.first_bytes), -row.first_bytes))
    return rows[:_MOST_ROWS]


def _compared(kind: str, first: Sequence[Share], second: Sequence[Share]) -> Iterator[Row]:
    sides = [{_name(share): share.bytes for share in shares} for shares in (first, second)]
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        yield Row(kind, name, sides[0].get(name, 0), sides[1].get(name, 0))


def _name(share: Share) -> str:
    """A line by file and function: numbers of lines move from one version of a program to the next."""
    if share.of is None:
        return "no stack recorded"
    return (
        share.of
        if isinstance(share.of, str)
        else f"{share.of.filename.rpartition('/')[2]}:{share.of.line} {share.of.name}"
    )
