"""Makes a trace of a given number of events out of what the H200 recorded: one program after the other in one process.

    python benchmarks/make_long_trace.py OUT.hbt [--events 1000000]

Sizes, order and times are the recorded ones, never the same program twice in a row; what a program left behind is freed
at its end. The recordings have no stacks: each size gets one of the 56 stacks of resnet50.frames, and a category.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hotbed.trace import Action, Events, Trace, load_trace
from hotbed.trace.compaction import write_compact
from hotbed.trace.model import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA = Path(__file__).parent.parent / "tests/data/h200"
STACKS = DATA / "resnet50.frames.pickle.xz"
CATEGORIES = ("parameters", "gradients", "optimizer state", "activations", "temporaries")
_PLACE_BITS = 40
_LAST = {
    "active_allocated": (Action.FREE_REQUESTED, Action.FREE_COMPLETED),
    "active_pending_free": (Action.FREE_COMPLETED,),
}
_COLUMNS = ("action", "address", "size", "stream", "pool", "time_us", "stack", "metadata", "step", "category")


def long_trace(count: int) -> Trace:
    """A trace of `count` events."""
    programs = [load_trace(path) for path in sorted(DATA.glob("*.record.pickle.xz"))]
    stacks = load_trace(STACKS).stacks
    parts: list[Events] = []
    made, turn, now = 0, 0, 1_700_000_000_000_000
    while made < count:
        part = _ended(programs[turn % len(programs)])
        part = _decorated(_moved(part, turn % len(programs), now), len(stacks))
        parts.append(part)
        now = int(part.time_us[-1]) + 1_000_000
        made, turn = made + len(part), turn + 1
    return Trace(
        source="made",
        device=0,
        events=_cut(_joined(parts), count),
        segments=(),
        stacks=stacks,
        strings=CATEGORIES,
        torch_version="2.11.0+cu130",
    )


def _ended(program: Trace) -> Events:
    """The events of `program`, and behind them those that give everything back."""
    rows = [
        (action, block.address, block.requested_bytes)
        for segment in program.segments
        for block in segment.blocks
        if block.state != "inactive"
        for action in _LAST[block.state]
    ]
    gone = [(Action.SEGMENT_FREE, segment.address, segment.size_bytes) for segment in program.segments]
    action, address, size = (np.array(column) for column in zip(*rows, *gone, strict=True))
    last = program.events
    none = np.full(len(action), NONE, np.int32)
    tail = Events(
        action=action.astype(np.uint8),
        address=address.astype(np.uint64),
        size=size.astype(np.int64),
        stream=np.zeros(len(action), np.uint64),
        pool=none,
        time_us=int(last.time_us[-1]) + 2 * np.arange(len(action)),
        stack=none,
        metadata=none,
        step=none,
        category=none,
    )
    return _joined([last, tail])


def _joined(parts: Sequence[Events]) -> Events:
    return Events(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS})


def _cut(events: Events, count: int) -> Events:
    return Events(**{name: getattr(events, name)[:count] for name in _COLUMNS})


def _moved(events: Events, place: int, begin_us: int) -> Events:
    """`events` in an address range of their own, from `begin_us` on."""
    address = (events.address & np.uint64((1 << _PLACE_BITS) - 1)) + np.uint64((place + 1) << _PLACE_BITS)
    pool = np.full(len(events), NONE, np.int32)
    return replace(events, address=address, time_us=events.time_us - events.time_us[0] + begin_us, pool=pool)


def _decorated(events: Events, stacks: int) -> Events:
    mixed = (events.size * 2654435761) >> 9
    memory = events.action <= Action.FREE_COMPLETED
    return replace(
        events,
        stack=np.where(memory, mixed % stacks, NONE).astype(np.int32),
        category=np.where(memory, mixed % len(CATEGORIES), NONE).astype(np.int32),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    write_compact(options.out, [long_trace(options.events)])


if __name__ == "__main__":
    main()
