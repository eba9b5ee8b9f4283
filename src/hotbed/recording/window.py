"""Reads torch's history since it was last cleared, with the memory map, as one pickle."""

from __future__ import annotations

import functools
import gc
import pickle
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotbed.recording.snapshot import snapshot_and

if TYPE_CHECKING:
    from hotbed.recording.history import History

_UNUSED = ("host_segments", "host_traces", "external_annotations")


@dataclass(frozen=True)
class Reading:
    """A window of history. `ends`: device → (allocations, frees) at its end; `snapshot` is torch's, as a pickle."""

    time_us: int
    ends: dict[int, list[int]]
    snapshot: bytes
    entries: int


def read_window(torch: Any, history: History, devices: list[int]) -> Reading:
    """The window that ends now; the history is empty afterwards."""
    counting = [
        functools.partial(time.time_ns),
        *(functools.partial(torch._C._cuda_memoryStats, device) for device in devices),
    ]
    with without_collections():
        snapshot, now_ns, *stats = snapshot_and(torch, counting + history.clearing())[: 1 + len(counting)]
        ends = {
            device: history.counters_in(device, found)[:2]
            for device, found in zip(devices, stats, strict=True)
        }
        entries = sum(map(len, snapshot["device_traces"]))
        kept = {name: value for name, value in snapshot.items() if name not in _UNUSED}
        return Reading(now_ns // 1000, ends, pickle.dumps(kept, protocol=4), entries)


class without_collections:  # noqa: N801 - reads as a statement
    """Millions of small objects come and go at once: the collector would look at all of them again and again."""

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collecting:
            gc.enable()
