"""Reads torch's history since it was last cleared, with the memory map, as one pickle."""

from __future__ import annotations

import gc
import pickle
from typing import TYPE_CHECKING, Any

from hotbed.recording.snapshot import snapshot as take_snapshot

if TYPE_CHECKING:
    from hotbed.recording.history import History

_TRIES = 3
_UNUSED = ("host_segments", "host_traces", "external_annotations")


def read_window(torch: Any, history: History, devices: list[int]) -> tuple[dict[int, list[int]], bytes, int]:
    """device → (allocations, frees) at its end; torch's snapshot as a pickle; how many entries it has.

    The history is empty afterwards. Other threads may allocate meanwhile: the snapshot is taken again then.
    """
    # Millions of small objects come and go at once: the collector would look at all of them again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(_TRIES):
            before = _ends(history, devices)
            snapshot = take_snapshot(torch)
            ends = _ends(history, devices)
            if before == ends:
                break
        history.clear()
        snapshot = {name: value for name, value in snapshot.items() if name not in _UNUSED}
        entries = sum(map(len, snapshot["device_traces"]))
        return ends, pickle.dumps(snapshot, protocol=4), entries
    finally:
        if collecting:
            gc.enable()


def _ends(history: History, devices: list[int]) -> dict[int, list[int]]:
    return {device: history.counters(device)[:2] for device in devices}
