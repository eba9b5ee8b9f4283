"""Makes small snapshots and compares traces; imported by the tests in this folder."""

from __future__ import annotations

import dataclasses
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.trace import load_trace

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Trace

MIB = 1 << 20
BASE = 0x7F0000000000
TIME = 1796087859393725


def entry(action: str, addr: int, size: int, **more: Any) -> dict[str, Any]:
    """A trace entry with the keys that every torch since 2.1 writes."""
    return {"action": action, "addr": addr, "size": size, "stream": 0, **more}


def timed(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries with times, 10 µs apart."""
    return [{**one, "time_us": TIME + 10 * index} for index, one in enumerate(entries)]


def block(address: int, size: int, requested: int = 0, state: str = "inactive") -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": []}


def segment(address: int, blocks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A final segment that is exactly as large as its blocks."""
    size = sum(one["size"] for one in blocks)
    return {
        "device": 0,
        "address": address,
        "total_size": size,
        "stream": 0,
        "segment_type": "large" if size > 2 * MIB else "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
        **more,
    }


def snapshot(entries: list[dict[str, Any]], segments: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"segments": segments, "device_traces": [entries], **more}


def loaded(value: object, folder: Path, **options: Any) -> Trace:
    """The trace that load_trace makes of `value`, pickled as torch does."""
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(value, protocol=4))
    return load_trace(path, **options)


def same(one: Any, other: Any) -> bool:
    """Equality of traces and whatever is in them, arrays with their types included."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and bool(np.array_equal(one, other))
    if dataclasses.is_dataclass(one) and type(one) is type(other):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
