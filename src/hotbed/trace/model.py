"""What a trace is in memory: event columns, the tables they point into, and the memory map at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hotbed.trace.recorded import Recorded


class Action(IntEnum):
    """What happened. Values are part of the .hbt format: never renumber, only append."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    OOM = 7
    SNAPSHOT = 8
    ANNOTATE = 9
    OTHER = 10


PoolId = tuple[int, int]
DEFAULT_POOL: PoolId = (0, 0)
NONE = -1
"""Index that stands for "not recorded" in the columns pool, stack, metadata, step and category."""


@dataclass(frozen=True)
class Events:
    """One entry per allocator event, oldest first; all columns have the same length n.

    Sizes are bytes as torch wrote them: requested (unrounded) for alloc and free, whole segments for segment
    events, rounded for OOM. Source: torch.cuda.memory._snapshot()["device_traces"].
    """

    action: npt.NDArray[np.uint8]
    """[n] values of Action"""
    address: npt.NDArray[np.uint64]
    """[n] device address; free device bytes for OOM; 0 where none was recorded"""
    size: npt.NDArray[np.int64]
    """[n] bytes"""
    stream: npt.NDArray[np.uint64]
    """[n] raw cudaStream_t; 0 is the default stream"""
    pool: npt.NDArray[np.int32]
    """[n] index into Trace.pools, NONE where the recorder did not say"""
    time_us: npt.NDArray[np.int64]
    """[n] microseconds since the Unix epoch, 0 where unknown"""
    stack: npt.NDArray[np.int32]
    """[n] index into Trace.stacks or NONE"""
    metadata: npt.NDArray[np.int32]
    """[n] index into Trace.strings or NONE"""
    step: npt.NDArray[np.int32]
    """[n] training step as declared by the recorder, or NONE"""
    category: npt.NDArray[np.int32]
    """[n] index into Trace.strings or NONE"""
    compile_context: npt.NDArray[np.int32] | None = None
    """[n] index into Trace.strings or NONE: the torch.compile region; None where no event names one"""

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True)
class Frame:
    """One line of a call stack."""

    filename: str
    line: int
    name: str


@dataclass(frozen=True)
class Block:
    """A block of a segment. `state`: "active_allocated", "active_pending_free" or "inactive"."""

    address: int
    size_bytes: int
    requested_bytes: int
    state: str
    stack: int = NONE


@dataclass(frozen=True)
class Segment:
    """Memory taken from the driver in one piece; with expandable segments one contiguous mapped run."""

    address: int
    size_bytes: int
    stream: int
    is_large: bool
    is_expandable: bool
    pool: PoolId
    blocks: tuple[Block, ...]

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


@dataclass(frozen=True)
class NvmlSample:
    """Device memory as NVML saw it: `used_bytes` of all processes, `process_bytes` of this one (None: unknown)."""

    time_us: int
    used_bytes: int
    process_bytes: int | None


@dataclass(frozen=True)
class DeviceInfo:
    """What the recorder knew of the device; None means unknown (torch snapshots say nothing)."""

    name: str | None = None
    total_bytes: int | None = None


@dataclass(frozen=True)
class Trace:
    """The allocator history of one device of one process.

    `segments` is the memory map when recording stopped, `initial_segments` the map when it began, worked out
    backwards (empty for a recording that began before the first allocation). `missing` says in words what the
    trace lacks; an empty tuple means nothing is known to be missing.
    """

    source: str
    device: int
    events: Events
    segments: tuple[Segment, ...]
    initial_segments: tuple[Segment, ...] = ()
    pools: tuple[PoolId, ...] = (DEFAULT_POOL,)
    stacks: tuple[tuple[Frame, ...], ...] = ()
    """innermost frame first"""
    strings: tuple[str, ...] = ()
    settings: str = ""
    """allocator settings in force while recording, as an env string; "" also where unknown"""
    torch_version: str | None = None
    device_info: DeviceInfo = field(default_factory=DeviceInfo)
    rank: int | None = None
    other_devices: tuple[int, ...] = ()
    """devices of the same file that also have events"""
    nvml: tuple[NvmlSample, ...] = ()
    missing: tuple[str, ...] = ()
    recorded: Recorded | None = None
    """what hotbed's recorder saw beside the events; None for torch's own snapshots"""
