"""Writes the made snapshots in this folder. Run from the repository root: python tests/data/made/make.py"""

from __future__ import annotations

import lzma
import pickle
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SEED = HERE.parent / "h200" / "leak.frames.pickle.xz"
EXPANDABLE = 0x7E0000000000


def entry(action: str, address: int, size: int, time_us: int, **more: Any) -> dict[str, Any]:
    """A trace entry as torch 2.12 and later write it."""
    address_key = "device_free" if action == "oom" else "addr"
    common = {
        "stream": 0,
        "time_us": time_us,
        "compile_context": "N/A",
        "user_metadata": "",
        "pool_id": (0, 0),
    }
    return {"action": action, address_key: address, "size": size, **common, **more}


def block(address: int, size: int, requested: int, state: str, frames: list[Any]) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": frames}


def segment(entry: dict[str, Any], device: int, live: list[dict[str, Any]]) -> dict[str, Any]:
    """The final segment for a segment_alloc `entry` with the allocations `live` in it, by address."""
    blocks = []
    position, end = entry["addr"], entry["addr"] + entry["size"]
    for held in live:
        size = -(-held["size"] // 512) * 512
        blocks.append(block(held["addr"], size, held["size"], "active_allocated", held.get("frames", [])))
        position = held["addr"] + size
    if position < end:
        blocks.append(block(position, end - position, 0, "inactive", []))
    return {
        "device": device,
        "address": entry["addr"],
        "total_size": entry["size"],
        "allocated_size": sum(held["size"] for held in live),
        "active_size": sum(held["size"] for held in live),
        "requested_size": sum(held["size"] for held in live),
        "stream": entry["stream"],
        "segment_type": "large" if entry["size"] > 2 << 20 else "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


def final_map(entries: list[dict[str, Any]], device: int) -> list[dict[str, Any]]:
    """The memory map that `entries` lead to; knows only cudaMalloc'ed segments that are kept."""
    live: dict[int, dict[str, Any]] = {}
    for event in entries:
        if event["action"] == "alloc":
            live[event["addr"]] = event
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
    taken = sorted((e for e in entries if e["action"] == "segment_alloc"), key=lambda e: e["addr"])
    return [
        segment(
            base, device, [live[a] for a in sorted(live) if base["addr"] <= a < base["addr"] + base["size"]]
        )
        for base in taken
    ]


def without_folders(entries: list[dict[str, Any]]) -> None:
    """Shortens the file names in the shared frames of `entries` to what does not depend on the machine."""
    for frame in (frame for one in entries for frame in one.get("frames", [])):
        installed = frame["filename"].rpartition("site-packages/")[2]
        frame["filename"] = Path(installed).name if installed.startswith("/") else installed


def every_kind() -> dict[str, Any]:
    """Two devices; every action, an expandable private pool, metadata, a compile context, an unknown action."""
    snapshot: dict[str, Any] = pickle.loads(lzma.decompress(SEED.read_bytes()))
    first = snapshot["device_traces"][0][:24]
    without_folders(first)
    frames, now = first[0]["frames"], first[-1]["time_us"]
    pool = {"stream": 7, "pool_id": (1, 0)}
    more = [
        entry("segment_map", EXPANDABLE, 20 << 20, now + 10, **pool, frames=frames),
        entry(
            "alloc",
            EXPANDABLE,
            3000000,
            now + 11,
            **{**pool, "user_metadata": "step 1", "compile_context": "[0/0]"},
        ),
        entry("annotate", EXPANDABLE, 0, now + 12, **{**pool, "user_metadata": "weights"}),
        entry("oom", 123456789, 1 << 40, now + 13, frames=frames),
        entry("free_requested", EXPANDABLE, 3000000, now + 14, **pool),
        entry("free_completed", EXPANDABLE, 3000000, now + 20, **pool),
        entry("segment_unmap", EXPANDABLE, 20 << 20, now + 21, **pool),
        entry("snapshot", 0, 1024, now + 30),
        entry("user_defined", 1 << 63, 0, now + 31),
    ]
    second = [
        entry("segment_alloc", EXPANDABLE, 2 << 20, now, frames=frames),
        entry("alloc", EXPANDABLE, 512, now + 1, frames=frames),
    ]
    snapshot["device_traces"] = [first + more, second]
    snapshot["segments"] = final_map(first, 0) + final_map(second, 1)
    snapshot["external_annotations"] = [{"name": "step", "stage": "START", "device": 0, "time_us": now}]
    snapshot["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return snapshot


if __name__ == "__main__":
    (HERE / "every_kind.pickle").write_bytes(pickle.dumps(every_kind(), protocol=4))
