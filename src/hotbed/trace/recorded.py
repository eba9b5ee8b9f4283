"""What a recorder saw beside the allocator's history: steps, emptied caches, who holds tensors, failures, gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# At run time too: hotbed.trace.recorded_json reads the types of the fields.
from hotbed.trace.model import Frame  # noqa: TC001

Phase = Literal["setup", "train", "eval"]
CallKind = Literal["empty_cache", "gc.collect", "gc", "capture"]
"""torch.cuda.empty_cache(); gc.collect() by the program; a collection that Python began by itself; what torch
does of both as the capture of a CUDA graph begins"""
HolderKind = Literal["container", "attribute", "variable", "closure", "traceback", "cycle", "graph"]
"""An element of a list, dict, set or deque; an attribute; a global or local variable; a closure; the frames of an exception
that is still held; objects that only each other refer to; the autograd graph of a tensor."""


@dataclass(frozen=True)
class Step:
    """One stretch of the program on one device: set-up, a training step, or forward passes without gradients.

    `first_event` and `end_event` are indices into the trace's events: [first, end); None where the stretch lies in a gap.
    Counts are those of torch.cuda.memory_stats() within the stretch, bytes those at its end. Peaks are the highest within
    it; None where no event tells. None of a count: not recorded.
    """

    phase: Phase
    number: int
    """counts the training steps from 0; of set-up and evaluation: that of the training step that follows"""
    first_event: int | None
    end_event: int | None
    begun_us: int
    end_us: int
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    allocations: int | None = None
    device_mallocs: int | None = None
    device_frees: int | None = None
    retries: int | None = None

    @property
    def seconds(self) -> float:
        """Wall time of the stretch."""
        return max(self.end_us - self.begun_us, 0) / 1e6


@dataclass(frozen=True)
class CacheCall:
    """A call that may give memory back. Bytes before and after it; `event` is the place in the events, `step` the number of
    the step under way, None where unknown. `skipped`: the guard did not carry it out."""

    kind: CallKind
    where: Frame | None
    time_us: int
    seconds: float
    event: int | None
    step: int | None
    allocated_before: int
    allocated_after: int
    reserved_before: int
    reserved_after: int
    skipped: bool = False


@dataclass(frozen=True)
class Holding:
    """Storages on the device that one owner keeps alive. `owner` in words ("list `losses`"), `path` how Python reaches it
    ("__main__.losses", "Trainer.cache"), `where` the line that fills it, where it can be told."""

    kind: HolderKind
    owner: str
    path: str
    where: Frame | None
    tensors: int
    bytes: int
    with_graph: int = 0
    """how many of the tensors have a grad_fn, and so keep a graph alive"""
    addresses: tuple[int, ...] = ()
    """of their storages, at most 4096"""


@dataclass(frozen=True)
class Sample:
    """Who held what at one moment, the largest owners first. `step` and `event` as in CacheCall."""

    time_us: int
    step: int | None
    event: int | None
    holdings: tuple[Holding, ...]


@dataclass(frozen=True)
class Failure:
    """An out-of-memory error that torch raised, with what was true then. None is unknown; bytes.

    `free_bytes` and `total_bytes` are the device's; `process_bytes` and `others_bytes` what NVML counts for this process
    and all others; `limit_bytes` a cap that the program set (per_process_memory_fraction).
    """

    time_us: int
    event: int | None
    step: int | None
    where: Frame | None
    message: str
    requested_bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None
    free_bytes: int | None
    total_bytes: int | None
    process_bytes: int | None
    others_bytes: int | None
    limit_bytes: int | None


@dataclass(frozen=True)
class Gap:
    """Events that were not recorded, so as not to slow the program down: `allocations` many, right before event `event`.

    The events at that place that bridge the gap are made up: they lead from the memory map before it to the one after it.
    """

    event: int
    bridged_events: int
    allocations: int
    begun_us: int
    end_us: int


@dataclass(frozen=True)
class Recorded:
    """Everything of one device, in order of time. `first_event` of the trace is 0. `complete`: closed by the recorder, not
    cut off by a killed process."""

    steps: tuple[Step, ...] = ()
    calls: tuple[CacheCall, ...] = ()
    samples: tuple[Sample, ...] = ()
    failures: tuple[Failure, ...] = ()
    gaps: tuple[Gap, ...] = ()
    overhead_seconds: float | None = None
    """how long the program waited for the recorder"""
    context_bytes: int | None = None
    """device memory of the process beyond what the allocator reserved (NVML), at the end"""
    complete: bool = True
