"""Writes traces as torch.cuda.memory._dump_snapshot() does: for pytorch.org/memory_viz, and for hotbed itself."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Final

from hotbed.files import replacing
from hotbed.trace.entries import NO_COMPILE_CONTEXT
from hotbed.trace.model import NONE, Action

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from hotbed.trace.model import Segment, Trace

    Frames = list[dict[str, Any]]

_PROTOCOL: Final = 4
_OOM: Final = int(Action.OOM)


def write_memory_viz(path: str | os.PathLike[str], traces: Sequence[Trace]) -> None:
    """Writes a snapshot. Read again it gives equal traces, but for what snapshots cannot hold: the torch version, the
    device, NVML samples, categories, steps, and what a recorder saw. Raises as files.replacing."""
    snapshot = {
        "segments": [
            _segment(segment, trace, stacks)
            for trace in traces
            for stacks in [_stacks(trace)]
            for segment in trace.segments
        ],
        "device_traces": _entries(traces),
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": traces[0].settings},
        "external_annotations": [],
    }
    with replacing(path) as out:
        pickle.dump(snapshot, out, _PROTOCOL)


def _stacks(trace: Trace) -> list[Frames]:
    """The stacks as lists of frames, each list and each frame one object however often it is used."""
    frames: dict[Any, dict[str, Any]] = {}
    return [
        [
            frames.setdefault(frame, {"filename": frame.filename, "line": frame.line, "name": frame.name})
            for frame in stack
        ]
        for stack in trace.stacks
    ]


def _entries(traces: Sequence[Trace]) -> list[list[dict[str, Any]]]:
    """One list a device, as torch numbers them."""
    found: list[list[dict[str, Any]]] = [[] for _ in range(max(trace.device for trace in traces) + 1)]
    for trace in traces:
        found[trace.device] = _device_entries(trace)
    return found


def _device_entries(trace: Trace) -> list[dict[str, Any]]:
    events, stacks = trace.events, _stacks(trace)
    nothing: Frames = []
    names = {int(action): action.name.lower() for action in Action}
    context = events.compile_context
    columns = (
        events.action,
        events.address,
        events.size,
        events.stream,
        events.pool,
        events.time_us,
        events.stack,
        events.metadata,
    )
    entries = []
    for action, address, size, stream, pool, time_us, stack, metadata in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        entry = {
            "action": names[action],
            "device_free" if action == _OOM else "addr": address,
            "size": size,
            "stream": stream,
            "time_us": time_us,
            "frames": nothing if stack == NONE else stacks[stack],
            "compile_context": NO_COMPILE_CONTEXT,
            "user_metadata": "" if metadata == NONE else trace.strings[metadata],
        }
        if pool != NONE:
            entry["pool_id"] = trace.pools[pool]
        entries.append(entry)
    if context is not None:
        for entry, index in zip(entries, context.tolist(), strict=True):
            if index != NONE:
                entry["compile_context"] = trace.strings[index]
    return entries


def _segment(segment: Segment, trace: Trace, stacks: list[Frames]) -> dict[str, Any]:
    blocks = [
        {
            "address": block.address,
            "size": block.size_bytes,
            "requested_size": block.requested_bytes,
            "state": block.state,
            "frames": [] if block.stack == NONE else stacks[block.stack],
        }
        for block in segment.blocks
    ]
    held = [block for block in segment.blocks if block.state == "active_allocated"]
    active = [block for block in segment.blocks if block.state != "inactive"]
    return {
        "device": trace.device,
        "address": segment.address,
        "total_size": segment.size_bytes,
        "allocated_size": sum(block.size_bytes for block in held),
        "active_size": sum(block.size_bytes for block in active),
        "requested_size": sum(block.requested_bytes for block in active),
        "stream": segment.stream,
        "segment_type": "large" if segment.is_large else "small",
        "segment_pool_id": segment.pool,
        "is_expandable": segment.is_expandable,
        "frames": [],
        "blocks": blocks,
    }
