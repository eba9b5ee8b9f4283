"""A Case: one trace with what several kinds of finding ask of it, each worked out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.errors import SettingsError
from hotbed.findings.allocations import Allocations, allocations_of
from hotbed.findings.growth import Growth, growth_of
from hotbed.findings.lines import own_frame
from hotbed.replaying.cost import warm_up_steps
from hotbed.replaying.releases import explain_releases
from hotbed.replaying.steps import find_steps
from hotbed.settings import AllocatorSettings
from hotbed.trace.memory_map import memory_map, segments_at
from hotbed.trace.model import NONE, Action, Block, Frame
from hotbed.trace.overview import Curves, curves
from hotbed.trace.recorded import Recorded, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from hotbed.trace import Segment, Trace

    Mask = npt.NDArray[np.bool_]

_NOTHING: Final = Recorded()


@dataclass(frozen=True)
class Share:
    """What one line or category holds: bytes rounded as blocks are, and how many allocations."""

    of: Frame | str | None
    bytes: int
    allocations: int


@dataclass(frozen=True, eq=False)
class Case:
    """One trace under examination. A *place* p is behind the events before p, before event p; 0 is the beginning."""

    trace: Trace

    @cached_property
    def recorded(self) -> Recorded:
        """What a recorder saw beside the events; empty for torch's own snapshots."""
        return self.trace.recorded or _NOTHING

    @cached_property
    def curves(self) -> Curves:
        """Requested, allocated and reserved bytes behind each event."""
        return curves(self.trace)

    @cached_property
    def allocations(self) -> Allocations:
        """Every allocation with its life."""
        return allocations_of(self.trace)

    @cached_property
    def settings(self) -> AllocatorSettings:
        """The allocator settings in force while the trace was recorded; defaults where they cannot be understood."""
        try:
            return AllocatorSettings.parse(self.trace.settings)
        except SettingsError:
            return AllocatorSettings()

    @cached_property
    def peak(self) -> int:
        """The place of the highest allocated level, its first time."""
        return _highest(self.curves.allocated)

    @cached_property
    def reserved_peak(self) -> int:
        """The place of the highest reserved level, its first time."""
        return _highest(self.curves.reserved)

    def allocated_at(self, place: int) -> int:
        """Bytes allocated at `place`."""
        return _value(self.curves.allocated, place, self._begun_with("active_allocated"))

    def reserved_at(self, place: int) -> int:
        """Bytes reserved at `place`."""
        begun = sum(segment.size_bytes for segment in self.trace.initial_segments)
        return _value(self.curves.reserved, place, begun)

    def _begun_with(self, state: str) -> int:
        blocks = (block for segment in self.trace.initial_segments for block in segment.blocks)
        return sum(block.size_bytes for block in blocks if block.state == state)

    @cached_property
    def empty_cache_events(self) -> tuple[int, ...]:
        """Places of the calls of empty_cache() that were carried out: as recorded, else as far as releases tell."""
        calls = [call for call in self.recorded.calls if call.kind == "empty_cache" and not call.skipped]
        if calls:
            return tuple(call.event for call in calls if call.event is not None)
        return tuple(sorted(explain_releases(self.trace).empty_cache_events))

    @cached_property
    def is_real(self) -> Mask:
        """[n] which events happened as written; the others are made up to bridge what was not recorded."""
        real = np.ones(len(self.trace.events), bool)
        for gap in self.recorded.gaps:
            real[gap.event : gap.event + gap.bridged_events] = False
        return real

    # --- lines and categories

    @cached_property
    def own_frames(self) -> tuple[Frame | None, ...]:
        """For each of the trace's stacks the program's own line (lines.own_frame)."""
        return tuple(own_frame(stack) for stack in self.trace.stacks)

    def line_of(self, stack: int) -> Frame | None:
        """The program's own line of stack number `stack`; None for NONE and for an empty stack."""
        return None if stack == NONE else self.own_frames[stack]

    @cached_property
    def _lines(self) -> tuple[list[Frame | None], npt.NDArray[np.int64]]:
        """The different lines, and for each stack (the last entry: no stack) the number of its line."""
        number: dict[Frame | None, int] = {None: 0}
        of_stack = [number.setdefault(frame, len(number)) for frame in self.own_frames]
        return list(number), np.array([*of_stack, 0], np.int64)

    @cached_property
    def allocation_lines(self) -> npt.NDArray[np.int64]:
        """[m] number of the line of each allocation, into `lines`."""
        return self._lines[1][self.allocations.stack]

    @property
    def lines(self) -> list[Frame | None]:
        """The different lines of the trace; the first is None, that of allocations without a stack."""
        return self._lines[0]

    def by_line(self, chosen: Mask) -> list[Share]:
        """Who made the allocations `chosen`, line by line, most bytes first."""
        return _shares(self.lines, self.allocation_lines[chosen], self.allocations.size[chosen])

    def by_category(self, chosen: Mask) -> list[Share]:
        """What the allocations `chosen` are for, most bytes first; empty where the recorder did not say."""
        category = self.allocations.category[chosen]
        if not (category != NONE).any():
            return []
        # NONE is -1 and so picks the last name.
        names = [*self.trace.strings, "unknown"]
        return _shares(names, category % len(names), self.allocations.size[chosen])

    def category_of(self, allocation: int) -> str | None:
        """The category of allocation number `allocation`."""
        index = int(self.allocations.category[allocation])
        return None if index == NONE else self.trace.strings[index]

    # --- the memory map

    def map_at(self, place: int, blocks_at: int | None = None) -> tuple[Segment, ...]:
        """Segments, live blocks and holes at `place`. Goes through the history: for the few places that matter.

        With `blocks_at`, an earlier place, the blocks are those of then, as far as their segments are still there.
        """
        made = self.allocations
        chosen = np.flatnonzero(made.active_at(place if blocks_at is None else blocks_at))
        chosen = chosen[np.argsort(made.address[chosen], kind="stable")]
        held = made.freed[chosen] >= place
        columns: tuple[npt.NDArray[Any], ...] = (
            made.address[chosen],
            made.size[chosen],
            made.requested[chosen],
            held,
            made.stack[chosen],
        )
        live = [
            Block(address, size, requested, "active_allocated" if mine else "active_pending_free", stack)
            for address, size, requested, mine, stack in zip(*(c.tolist() for c in columns), strict=True)
        ]
        return memory_map(segments_at(self.trace, place), live)

    # --- steps

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The stretches of the program: as recorded, else those that the rise and fall of memory shows, else none."""
        return self.recorded.steps or tuple(self._derived_steps())

    @property
    def steps_are_recorded(self) -> bool:
        """Whether a recorder saw the steps; otherwise they are a guess, with phases setup and train only."""
        return bool(self.recorded.steps)

    def _derived_steps(self) -> Iterable[Step]:
        events = self.trace.events
        starts = list(find_steps(self.trace).starts)
        if not starts:
            return
        bounds = [*starts, len(events)]
        if starts[0] > 0:
            yield self.part("setup", 0, 0, starts[0])
        for number, (first, end) in enumerate(pairwise(bounds)):
            yield self.part("train", number, first, end)

    def part(self, phase: Any, number: int, first: int, end: int) -> Step:
        """Events [first, end) as a stretch of its own, with what the events tell of it."""
        events = self.trace.events
        stretch = slice(first, end)
        action = events.action[stretch]
        took = (action == Action.SEGMENT_ALLOC) | (action == Action.SEGMENT_MAP)
        gave = (action == Action.SEGMENT_FREE) | (action == Action.SEGMENT_UNMAP)
        return Step(
            phase=phase,
            number=number,
            first_event=first,
            end_event=end,
            begun_us=int(events.time_us[first]),
            end_us=int(events.time_us[end - 1]),
            allocated_bytes=int(self.curves.allocated[end - 1]),
            reserved_bytes=int(self.curves.reserved[end - 1]),
            peak_allocated_bytes=int(self.curves.allocated[stretch].max()),
            peak_reserved_bytes=int(self.curves.reserved[stretch].max()),
            allocations=int((action == Action.ALLOC).sum()),
            device_mallocs=int(took.sum()),
            device_frees=int(gave.sum()),
        )

    @cached_property
    def train_steps(self) -> tuple[Step, ...]:
        """The training steps, in order."""
        return tuple(step for step in self.steps if step.phase == "train")

    @cached_property
    def settled_steps(self) -> tuple[Step, ...]:
        """The training steps behind the warm-up (a quarter of them, at least one); all of fewer than three."""
        return self.train_steps[warm_up_steps(len(self.train_steps)) :]

    @cached_property
    def growth(self) -> Growth | None:
        """What grows from step to step; None for a trace without steps."""
        return growth_of(self)

    def step_at(self, event: int) -> Step | None:
        """The stretch that event number `event` lies in."""
        for step in self.steps:
            first, end = step.first_event, step.end_event
            if first is not None and end is not None and first <= event < end:
                return step
        return None


def _highest(curve: npt.NDArray[np.int64]) -> int:
    return int(curve.argmax()) + 1 if len(curve) else 0


def _value(curve: npt.NDArray[np.int64], place: int, begun: int) -> int:
    return int(curve[place - 1]) if place > 0 else begun


def _shares(names: list[Any], number: npt.NDArray[Any], size: npt.NDArray[np.int64]) -> list[Share]:
    held = np.bincount(number, weights=size, minlength=len(names))
    count = np.bincount(number, minlength=len(names))
    order = np.argsort(-held, kind="stable")
    return [Share(names[i], int(held[i]), int(count[i])) for i in order.tolist() if count[i]]
