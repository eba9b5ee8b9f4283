"""Every key that a released torch accepts in its allocator settings: since when, and what its value looks like."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hotbed.settings.torch_version import OLDEST, TorchVersion


class Kind(Enum):
    """Form of a key's value."""

    BACKEND = "native or cudaMallocAsync"
    MIB = "a whole number of MiB"
    COUNT = "a whole number"
    FRACTION = "a number like 0.8"
    FLAG = "True or False"
    DIVISIONS = "a power of two, or a list like [256:1,512:2,>:4]"
    RAW = "a fraction like 0.5, or GiB like 40G"
    RAW_LIST = "a list like [name:0.5,other:40G]"


@dataclass(frozen=True, slots=True)
class Key:
    """A settings key. `effect` says what it does, in words that need no value, for keys hotbed does not model."""

    name: str
    since: TorchVersion
    kind: Kind
    effect: str = ""

    @property
    def modelled(self) -> bool:
        """True for keys that AllocatorSettings has a field for; the others are in its `other`."""
        return not self.effect


def _key(name: str, since: tuple[int, int], kind: Kind, effect: str = "") -> Key:
    return Key(name, TorchVersion(*since), kind, effect)


_ALL = (
    Key("backend", OLDEST, Kind.BACKEND),
    _key("expandable_segments", (2, 1), Kind.FLAG),
    Key("max_split_size_mb", OLDEST, Kind.MIB),
    _key("max_non_split_rounding_mb", (2, 6), Kind.MIB),
    _key("large_segment_size_mb", (2, 11), Kind.MIB),
    Key("garbage_collection_threshold", OLDEST, Kind.FRACTION),
    Key("roundup_power2_divisions", OLDEST, Kind.DIVISIONS),
    _key("per_process_memory_fraction", (2, 10), Kind.FRACTION),
    _key(
        "release_lock_on_cudamalloc",
        (2, 2),
        Kind.FLAG,
        "lets other threads allocate while one waits for cudaMalloc; no effect on sizes",
    ),
    _key(
        "release_lock_on_hipmalloc",
        (2, 2),
        Kind.FLAG,
        "the ROCm name of release_lock_on_cudamalloc; no effect on sizes",
    ),
    _key(
        "pinned_use_cuda_host_register",
        (2, 2),
        Kind.FLAG,
        "pins host memory with cudaHostRegister; host memory only",
    ),
    _key(
        "pinned_use_hip_host_register",
        (2, 2),
        Kind.FLAG,
        "the ROCm name of pinned_use_cuda_host_register; host memory only",
    ),
    _key(
        "pinned_num_register_threads",
        (2, 2),
        Kind.COUNT,
        "threads that touch host pages before they are pinned; host memory only",
    ),
    _key(
        "pinned_use_background_threads",
        (2, 6),
        Kind.FLAG,
        "checks in the background which pinned blocks are free again; host memory only",
    ),
    _key(
        "graph_capture_record_stream_reuse",
        (2, 9),
        Kind.FLAG,
        "lets a graph capture reuse memory that record_stream had held back; smaller graph pools",
    ),
    _key(
        "pinned_reserve_segment_size_mb",
        (2, 10),
        Kind.MIB,
        "pins one host segment of this many MiB in advance; host memory only",
    ),
    _key(
        "throw_on_cudamalloc_oom",
        (2, 12),
        Kind.FLAG,
        "refuses a segment that would pass the memory limit before the cache is emptied for it",
    ),
    _key(
        "pinned_free_catch_all",
        (2, 12),
        Kind.FLAG,
        "frees pinned blocks that no size class takes; host memory only",
    ),
    _key(
        "pinned_max_round_threshold_mb",
        (2, 13),
        Kind.MIB,
        "above this size pinned requests are not rounded to a power of two; host memory only",
    ),
    _key(
        "pinned_max_cached_size_mb",
        (2, 13),
        Kind.MIB,
        "above this size pinned blocks are not kept for reuse; host memory only",
    ),
    _key(
        "expandable_segments_reserve",
        (2, 15),
        Kind.RAW,
        "address space that one expandable segment reserves, instead of 9/8 of the GPU",
    ),
    _key(
        "expandable_segments_reserve_by_class",
        (2, 15),
        Kind.RAW_LIST,
        "the same, by the class that C++ code gives a stream",
    ),
)

KEYS = {key.name: key for key in _ALL}
"""All keys by name, in the order in which settings strings are written."""


def known_keys(version: TorchVersion) -> frozenset[str]:
    """Names of the keys that torch `version` accepts. Source: allocator-semantics section 7."""
    return frozenset(name for name, key in KEYS.items() if key.since <= version)
