"""Makes the DeviceRuns of a finished pass: torch's history with its steps and categories filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hotbed.phantom.control import LIBRARIES
from hotbed.predicting.script_run import DeviceRun, Workspace
from hotbed.trace import load_devices
from hotbed.trace.marking.blocks import Blocks
from hotbed.trace.marking.categories import categories_of, filled
from hotbed.trace.marking.marked import marked
from hotbed.trace.model import DeviceInfo
from hotbed.trace.recorded import Recorded

if TYPE_CHECKING:
    from hotbed.gpu import Gpu
    from hotbed.predicting.passes import Finished
    from hotbed.trace import Trace


def device_runs(finished: Finished, gpu: Gpu) -> tuple[DeviceRun, ...]:
    """A DeviceRun for every device that the program allocated on, or tried to."""
    used = [
        stats for stats in finished.report.get("devices", ()) if stats["peak_reserved_bytes"] or stats["ooms"]
    ]
    path = finished.snapshot if used else None
    traces = {} if path is None else {trace.device: trace for trace in load_devices(path)}
    return tuple(_device_run(finished.report, stats, traces.get(stats["device"]), gpu) for stats in used)


def host_model_bytes(report: dict[str, Any], devices: tuple[DeviceRun, ...]) -> int:
    """Parameters and buffers that were copied from the host: so much of the model was built there first."""
    total = 0
    for device in devices:
        if device.trace is not None:
            events, strings = device.trace.events, device.trace.strings
            blocks = Blocks(device.trace)
            copied = blocks.allocs[filled(report, blocks)]
            model = [strings[number] in ("parameters", "buffers") for number in events.category[copied]]
            total += int(events.size[copied][model].sum())
    return total


def _device_run(report: dict[str, Any], stats: dict[str, int], trace: Trace | None, gpu: Gpu) -> DeviceRun:
    if trace is None:
        return DeviceRun(trace=None, steps=(), workspaces=(), **stats)
    blocks = Blocks(trace)
    workspaces = _workspaces(report, blocks)
    lent = [workspace.event for workspace in workspaces if workspace.bytes]
    stretches, category = categories_of(report, blocks, lent)
    facts = replace(trace, torch_version=report["torch"], device_info=DeviceInfo(gpu.name, gpu.total_bytes))
    completed = marked(facts, blocks, stretches, category, Recorded())
    steps = tuple(stretch.mark() for stretch in stretches)
    return DeviceRun(trace=completed, steps=steps, workspaces=workspaces, **stats)


def _workspaces(report: dict[str, Any], blocks: Blocks) -> tuple[Workspace, ...]:
    """The phantom's log of what libraries were lent, as allocations of this trace; each loan once.

    Calls that needed no workspace are left out: there is no allocation that could be larger under another layout.
    """
    mine = [entry for entry in report["workspaces"] if entry["device"] == blocks.trace.device]
    lent = [entry for entry in mine if entry["bytes"]]
    numbers = blocks.at_times([e["address"] for e in lent], [e["time_us"] for e in lent])
    found: dict[Workspace, None] = {}
    for entry, number in zip(lent, numbers.tolist(), strict=True):
        size, others = entry["bytes"], tuple(entry["alternative_bytes"])
        if number >= 0 or not size:
            event = int(blocks.allocs[number]) if size else blocks.place_at(entry["time_us"])
            alternatives = others if set(others) != {size} else ()
            found[Workspace(event, LIBRARIES[entry["library"]], size, alternatives)] = None
    return tuple(found)
