"""ScriptRuns made by hand, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.gpu import find_gpu
from hotbed.predicting.script_run import DeviceRun, ScriptRun
from hotbed.trace import Action
from hotbed.trace.overview import curves

if TYPE_CHECKING:
    from hotbed.trace import Trace


def device_of(trace: Trace, **changes: Any) -> DeviceRun:
    """What a device saw whose history is `trace`; its peaks are those of the trace."""
    found = curves(trace)
    reserved = int(found.reserved.max())
    device = DeviceRun(
        device=0,
        trace=trace,
        steps=(),
        workspaces=(),
        peak_allocated_bytes=int(found.allocated.max()),
        peak_reserved_bytes=reserved,
        peak_driver_bytes=reserved,
        alloc_retries=0,
        ooms=0,
    )
    return replace(device, **changes)


def run_of(*devices: DeviceRun, **changes: Any) -> ScriptRun:
    """A run of three steps on an H200 that ended as it should."""
    run = ScriptRun(
        gpu=find_gpu("h200"),
        devices=devices,
        ending="steps",
        script_exit_code=None,
        error=None,
        optimizer_steps=3,
        torch_version="2.14.1+cu130",
        cudnn_version=None,
        settings="",
        libraries=(),
        reads=(),
        not_modelled=(),
        host_peak_bytes=1 << 30,
        host_model_bytes=0,
        wall_seconds=1.0,
    )
    return replace(run, **changes)


def with_categories(trace: Trace, names: list[str]) -> Trace:
    """`trace` with one category for each of its allocations, in order."""
    strings = tuple(dict.fromkeys(names))
    category = trace.events.category.copy()
    category[trace.events.action == Action.ALLOC] = np.array([strings.index(name) for name in names])
    return replace(trace, events=replace(trace.events, category=category), strings=strings)
