"""Says in words what a recording lacks: ring-truncated, late, disordered or absent histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.trace.model import Action
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.trace.beginning import Beginning
    from hotbed.trace.model import Events, Segment

# Clocks of different cores may differ by some microseconds; a lowered ring shows as milliseconds and more.
_CLOCK_SLACK_US: Final = 1000


def gaps(events: Events, segments: Sequence[Segment], start: Beginning) -> tuple[str, ...]:
    """One sentence for each thing that is missing from the history; empty where nothing is known to be."""
    if not len(events):
        return (
            "there is no event history, only the memory map: recording was off when the snapshot was taken, "
            "so peaks and requests are unknown",
        )
    return (*_late(start), *_disordered(events), *_no_map(events, segments))


def _late(start: Beginning) -> list[str]:
    if not start.segments and not start.live_blocks:
        return []
    held = sum(segment.size_bytes for segment in start.segments)
    texts = [
        f"the ring (max_entries) overwrote the oldest entries or recording began late: {start.live_blocks} blocks "
        f"({start.live_bytes / MIB:.1f} MiB) in {len(start.segments)} segments ({held / MIB:.0f} MiB) were already "
        "there when the kept history begins; peaks and requests before it are unknown"
    ]
    if start.unplaced:
        texts.append(
            f"{start.unplaced} of these blocks lie in no segment that the history or the final memory map knows: "
            "entries are missing in between, or the snapshot is of another moment"
        )
    return texts


def _disordered(events: Events) -> list[str]:
    known = events.time_us[events.time_us > 0]
    if not len(known):
        return ["the entries have no times (torch before 2.2)"]
    steps = np.diff(known)
    back = np.flatnonzero(steps < -_CLOCK_SLACK_US)
    if not len(back):
        return []
    at = int(back[0])
    return [
        f"time goes backwards {len(back)} times, first behind entry {at} by {-int(steps[at]) / 1000:.1f} ms: the order "
        "of the entries is not the order of events (torch does this when max_entries was lowered while recording)"
    ]


def _no_map(events: Events, segments: Sequence[Segment]) -> list[str]:
    live = np.count_nonzero(events.action == Action.ALLOC) > np.count_nonzero(
        events.action == Action.FREE_COMPLETED
    )
    if segments or not live:
        return []
    return ["there is no memory map of the end, so what was live before the history begins is unknown"]
