"""What a replay found out: the Outcome and its parts, and their JSON form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1

# Measured by benchmarks/exactness.py against the cudaMallocAsync rows of the H200.
ASYNC_ERROR = (
    "estimate: cudaMallocAsync decides inside the driver, whose pool is only modelled here; against an H200 peak "
    "reserved came out 9 % low to 7 % high on 11 workloads (mean error 3.6 %), 36 % high on one with CUDA graphs"
)


@dataclass(frozen=True)
class OomPoint:
    """Where in the trace a replay ran out of memory. Sizes are bytes; the replay ends there."""

    event: int | None
    """index of the trace event whose request failed; None while rebuilding the state before the trace"""
    events: int
    """how many events the trace has"""
    step: int | None
    """training step, counted from 0; None where steps are unknown"""
    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    free_reserved_bytes: int
    """reserved and in no live block, yet of no use to this request"""


@dataclass(frozen=True)
class FreeMemory:
    """Free bytes of one kind at the peak, and why the request that made the peak could not use them."""

    reason: str
    bytes: int
    blocks: int
    largest_bytes: int


@dataclass(frozen=True)
class Fragmentation:
    """Reserved memory at the moment of its peak, taken apart. Bytes.

    `request_bytes` is the request that made reserved memory grow to the peak; `unusable` sorts the free memory
    at that moment by why it could not serve it.
    """

    event: int
    request_bytes: int
    reserved_bytes: int
    live_requested_bytes: int
    rounding_bytes: int
    """inside live blocks, beyond what was requested"""
    unusable: tuple[FreeMemory, ...]


@dataclass(frozen=True)
class Timeline:
    """Memory over the replay, thinned to the points that shape the curve: columns of equal length."""

    event: tuple[int, ...]
    requested_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """Driver calls and their modelled time. `source` names the calibration; `per_step` is the settled part.

    Not modelled: waiting for the device, which cudaFree and unmapping imply while kernels run.
    """

    device_calls: int
    total_ms: float
    per_step_ms: float
    per_step_calls: float
    steps: int
    """how many steps the trace has; 1 where none could be told apart, and then per_step is the whole trace"""
    steps_source: str
    step_ms: float | None
    """recorded time of a step, None where the trace has no times"""
    source: str
    returning_per_step_ms: float = 0.0
    """the part of `per_step_ms` that gives memory back, which waits for the device"""


@dataclass(frozen=True)
class Outcome:
    """What the allocator did with a trace under given settings, on a given GPU.

    Peaks are torch.cuda.memory_stats() of the torch that replayed (`torch_version`); `estimate` is None, or says
    why the figures are not exact.
    """

    source: str
    settings: str
    cap_bytes: int | None
    gpu: str
    total_bytes: int
    """memory of the card as CUDA reports it; `context_bytes` of it are taken by the CUDA context"""
    context_bytes: int
    torch_version: str
    out_of_memory: bool
    oom: OomPoint | None
    peak_reserved_bytes: int
    peak_allocated_bytes: int
    peak_active_bytes: int
    peak_requested_bytes: int
    peak_segments: int
    device_mallocs: int
    device_frees: int
    alloc_retries: int
    ooms: int
    stream_syncs: int
    operations: int
    seconds: float
    cost: Cost
    estimate: str | None = None
    fragmentation: Fragmentation | None = None
    timeline: Timeline | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain containers, schema 1: the fields above under their names, and `schema`."""
        return {"schema": SCHEMA, **asdict(self)}
