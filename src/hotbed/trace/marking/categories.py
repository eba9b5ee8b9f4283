"""Says what each allocation of a run was for, by where storages lay when the recorder looked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.trace.marking.counts import Counters
from hotbed.trace.marking.likeness import UNSEEN, by_likeness
from hotbed.trace.marking.module_calls import handed_in, module_calls
from hotbed.trace.marking.phases import Moment, phases

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hotbed.trace.marking.blocks import Blocks
    from hotbed.trace.marking.phases import Stretch

    Category = npt.NDArray[np.int8]

CATEGORIES = (
    "parameters",
    "gradients",
    "optimizer state",
    "buffers",
    "kv cache",
    "inputs",
    "activations",
    "temporaries",
    "library workspaces",
    "other",
)
"""Names in Events.category; every alloc event of a recorded trace has one. Rules: docs/internals/record.md."""

# A storage may have several roles; of these the later ones win.
_BY_ADDRESS = ("kv cache", "gradients", "optimizer state", "buffers", "parameters")


def moments_of(report: dict[str, Any], blocks: Blocks) -> list[Moment]:
    """The recorder's marks as places in the trace of one device.

    A mark of which the time alone was taken lies where the history was then, between the counted marks around it; by how much
    the two clocks differ at least is told by the counted mark before it.
    """
    ends = set(report["rounds"])
    moments: list[Moment] = []
    timed: list[int] = []
    late_us = 0
    for index, mark in enumerate(report["marks"]):
        if mark["positions"] is None:
            place = max(blocks.place_at(mark["time_us"] + late_us), moments[-1].place if moments else 0)
            moments.append(Moment(mark["kind"], place, mark["time_us"], index in ends))
            timed.append(index)
            continue
        moment = _counted(mark, index in ends, blocks)
        late_us = late_us if moment.in_gap else _late(moment, blocks)
        for before in timed:
            moments[before] = replace(moments[before], place=min(moments[before].place, moment.place))
        moments.append(moment)
        timed.clear()
    return moments


def _counted(mark: dict[str, Any], ends_round: bool, blocks: Blocks) -> Moment:
    device, positions = blocks.trace.device, mark["positions"]
    counted = (positions[device] if device < len(positions) else None) or (0, 0)
    place, in_gap = blocks.counted.place(*counted[:2])
    counters = Counters(*counted) if len(counted) > 2 else None
    return Moment(mark["kind"], place, mark["time_us"], ends_round, in_gap, counters)


def _late(moment: Moment, blocks: Blocks) -> int:
    """What must at least be added to the time of `moment` for it to lie between the events around it that are counted."""
    at = int(np.searchsorted(blocks.changes, moment.place))
    since, now = blocks.counted.unbroken_since(moment.place), moment.time_us
    before = int(blocks.times_us[blocks.changes[at - 1]]) if at and blocks.changes[at - 1] >= since else now
    after = int(blocks.times_us[blocks.changes[at]]) if at < len(blocks.changes) else now
    return max(before - now, 0) or min(after - now, 0)


def categories_of(
    report: dict[str, Any], blocks: Blocks, workspaces: Sequence[int]
) -> tuple[tuple[Stretch, ...], Category]:
    """The phases of one device, and for each of blocks.allocs an index into CATEGORIES.

    `workspaces`: events of allocations that were lent to libraries. A report without `inflows`, the phantom's log of copies
    from the host, has its inputs told by when they were made.
    """
    moments = moments_of(report, blocks)
    held = _held(report, blocks, moments)
    end = Moment("end", len(blocks.trace.events), report["time_us"], counters=_at_end(moments))
    begun = Moment("begin", 0, report["begun_us"])
    calls = module_calls(blocks)
    forward = _first_call(blocks, calls)
    training = _training_begins(blocks, moments, held, end, forward)
    steps = phases(moments, bool(report["optimizers"]), training, end, begun)
    category = np.full(len(blocks.allocs), CATEGORIES.index("other"), np.int8)
    places = [moment.place for moment in moments]
    for step in steps:
        if step.phase != "setup" and step.end_event > step.first_event:
            inside = moments[bisect_left(places, step.first_event) : bisect_right(places, step.end_event)]
            _fill(category, _between(blocks, step.first_event, step.end_event), "temporaries")
            _fill(category, _activations(blocks, inside, step), "activations")
    _fill(category, _prepared(blocks, moments, steps, forward), "other")
    told = "inflows" in report
    _fill(category, filled(report, blocks) if told else handed_in(blocks, calls, moments, steps), "inputs")
    _fill(category, np.searchsorted(blocks.allocs, workspaces), "library workspaces")
    seen = np.full(len(blocks.allocs), UNSEEN, np.int8)
    for name in _BY_ADDRESS:
        _fill(seen, held.get(name, _NOTHING), name)
    category = np.where(seen == UNSEEN, category, seen)
    if not told:
        _tell_others(category, seen, blocks, moments, steps)
    return steps, category


def _tell_others(
    category: Category,
    seen: Category,
    blocks: Blocks,
    moments: Sequence[Moment],
    steps: tuple[Stretch, ...],
) -> None:
    """What lived on in steps without notes has the category of its like; without one it is no temporary, but unknown."""
    unlike, likely = by_likeness(blocks, seen, moments, steps)
    unlike = unlike[category[unlike] == CATEGORIES.index("temporaries")]
    _fill(category, unlike, "other")
    found = likely != UNSEEN
    category[found] = likely[found]


def _at_end(moments: Sequence[Moment]) -> Counters | None:
    """What torch counted when the recorder was told that it is over."""
    return next((moment.counters for moment in reversed(moments) if moment.kind == "end"), None)


def filled(report: dict[str, Any], blocks: Blocks) -> npt.NDArray[np.int64]:
    """Numbers of the allocations that the host copied something into, each once."""
    copies = report["inflows"]
    found = np.unique(blocks.at_times([copy[0] for copy in copies], [copy[2] for copy in copies]))
    return found[found >= 0]


_NOTHING: npt.NDArray[np.int64] = np.zeros(0, np.int64)


def _fill(category: Category, numbers: npt.NDArray[np.int64], name: str) -> None:
    category[numbers] = CATEGORIES.index(name)


def _held(report: dict[str, Any], blocks: Blocks, moments: list[Moment]) -> dict[str, npt.NDArray[np.int64]]:
    """Category → numbers of the allocations in which the recorder saw its storages."""
    addresses: dict[str, list[int]] = {}
    places: dict[str, list[int]] = {}
    for note in report["notes"]:
        if note["device"] == blocks.trace.device:
            category, found = note["category"], note["addresses"]
            addresses.setdefault(category, []).extend(found)
            places.setdefault(category, []).extend([moments[note["mark"]].place] * len(found))
    return {name: blocks.at_places(addresses[name], places[name]) for name in addresses}


def _between(blocks: Blocks, first: int, end: int) -> npt.NDArray[np.int64]:
    return np.arange(*np.searchsorted(blocks.allocs, [first, end]))


def _activations(blocks: Blocks, moments: Sequence[Moment], step: Stretch) -> npt.NDArray[np.int64]:
    """Made in a forward and alive when the backward begins that follows it."""
    found = [_NOTHING]
    first = step.first_event
    for moment in moments:
        if moment.kind == "backward":
            # What is there after a gap may be older than this forward.
            made = _between(blocks, max(first, blocks.counted.unbroken_since(moment.place)), moment.place)
            found.append(made[blocks.freed_at[made] >= moment.place])
        elif moment.kind == "backward end":
            first = moment.place
    return np.concatenate(found)


def _prepared(
    blocks: Blocks, moments: list[Moment], steps: tuple[Stretch, ...], forward: int
) -> npt.NDArray[np.int64]:
    """Made in the first stretch after set-up, but before its first forward, and still alive in its backward."""
    first = next((step.first_event for step in steps if step.phase != "setup"), 0)
    backward = next((moment.place for moment in moments if moment.kind == "backward"), first)
    made = _between(blocks, first, forward if forward < backward else first)
    return made[blocks.freed_at[made] >= backward]


def _training_begins(
    blocks: Blocks,
    moments: list[Moment],
    held: dict[str, npt.NDArray[np.int64]],
    end: Moment,
    first_call: int,
) -> Moment:
    """After the last parameter or buffer that was made before the first forward; set-up ends there."""
    learning = next((m for m in moments if m.kind in ("backward", "step")), end)
    forward = min(first_call, learning.place)
    made = np.concatenate([held.get(name, _NOTHING) for name in ("parameters", "buffers")])
    events = blocks.allocs[made]
    events = events[events < forward]
    place = int(events.max()) + 1 if len(events) else (forward if learning is end else 0)
    return Moment("training", place, _time(blocks, place, learning))


def _first_call(blocks: Blocks, calls: npt.NDArray[np.int64]) -> int:
    """The first event within a module's forward; the number of events where no stack shows one."""
    return int(calls[0]) if len(calls) else len(blocks.trace.events)


def _time(blocks: Blocks, place: int, otherwise: Moment) -> int:
    times = blocks.trace.events.time_us
    return int(times[place]) if place < len(times) else otherwise.time_us
