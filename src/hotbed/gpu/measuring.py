"""Measures what the driver's memory calls cost on this machine's GPU, and what a context takes."""

from __future__ import annotations

import os
from ctypes import byref, c_int, c_uint64
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from hotbed.errors import PlatformError
from hotbed.gpu.cuda import ATTRIBUTES
from hotbed.gpu.driver_costs import CALLS, CallCost
from hotbed.gpu.live import LiveGpu, live_gpus
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotbed.gpu.cuda import Cuda

MALLOC_MIB = (2, 20, 32, 64, 128, 256, 512, 1024)
PAGE_MIB = (2, 12, 20, 32, 64, 128, 256)
GROUPS = (4, 16)  # pages opened by one cuMemSetAccess: torch opens all that it maps in one go
PAGE_OF_TORCH_MIB = 20
CROWD = 512  # live 2 MiB blocks while the "crowded" figures are taken
RESERVE_FACTOR = 1.125  # torch reserves this much address space for an expandable segment, times the memory
SPARE = 0.25  # largest part of the free memory that a burst may take


@dataclass(frozen=True)
class Sample:
    """Times of one call at one size, microseconds. `mode`: burst, alternating, crowded or, for set_access, grouped."""

    call: str
    mode: str
    size_mib: int
    median_us: float
    p90_us: float
    count: int


@dataclass(frozen=True)
class ContextCost:
    """Device memory that this process's CUDA context took, None when NVML did not say; `method` says how."""

    context_bytes: int | None
    method: str
    other_processes: int | None


@dataclass(frozen=True)
class Measurement:
    """All that one run of `hotbed calibrate` learns."""

    name: str
    total_bytes: int
    nvml_total_bytes: int | None
    cuda_version: tuple[int, int]
    allocation_call: str
    figures: dict[str, int]
    context: ContextCost
    reserve_bytes: int
    reserve_us: float
    overhead_us: float
    costs: dict[str, CallCost]
    samples: tuple[Sample, ...]


def measure(cuda: Cuda, *, quick: bool = False) -> Measurement:
    """Measures the device of `cuda`, which has no context yet; the GPU should be idle.

    `quick` takes a third of the repetitions. Takes some seconds and at most a quarter of the free memory.
    Raises PlatformError when a call fails.
    """
    before = _on_nvml(cuda.uuid())
    cuda.open_context()
    context = _context_cost(before, _on_nvml(cuda.uuid()))
    clock = _Clock(cuda, repetitions=20 if quick else 60)
    samples = [*_malloc_samples(clock), *_crowded_samples(clock)]
    reserve_bytes = int(cuda.total_bytes() * RESERVE_FACTOR) // (2 * MIB) * (2 * MIB)
    if not cuda.has_virtual_memory():
        raise PlatformError(
            f"{cuda.name()} has no virtual memory management, which torch's allocator can use"
        )
    reserve_us = _reserve_us(clock, reserve_bytes)
    samples += _page_samples(clock, reserve_bytes)
    return Measurement(
        name=cuda.name(),
        total_bytes=cuda.total_bytes(),
        nvml_total_bytes=before.total_bytes if before else None,
        cuda_version=cuda.driver_version(),
        allocation_call="cudaMalloc" if cuda.runtime else "cuMemAlloc",
        figures={figure: cuda.attribute(number) for figure, number in ATTRIBUTES.items()},
        context=context,
        reserve_bytes=reserve_bytes,
        reserve_us=reserve_us,
        overhead_us=clock.overhead_us,
        costs={call: fit(sample for sample in samples if sample.call == call) for call in CALLS},
        samples=tuple(samples),
    )


def fit(samples: Iterable[Sample]) -> CallCost:
    """The line through the burst medians that errs least in proportion, neither part of it negative.

    Proportion, because an allocator makes many small calls and few large ones.
    """
    rows = [
        (1 / s.median_us**2, s.size_mib, s.median_us) for s in samples if s.mode == "burst" and s.median_us
    ]
    if not rows:
        return CallCost(0.0, 0.0)
    total = sum(weight for weight, _, _ in rows)
    mean_mib = sum(weight * mib for weight, mib, _ in rows) / total
    mean_us = sum(weight * us for weight, _, us in rows) / total
    spread = sum(weight * (mib - mean_mib) ** 2 for weight, mib, _ in rows)
    joint = sum(weight * (mib - mean_mib) * (us - mean_us) for weight, mib, us in rows)
    slope = max(0.0, joint / spread) if spread else 0.0
    base = mean_us - slope * mean_mib
    if base < 0:
        base = 0.0
        slope = sum(weight * mib * us for weight, mib, us in rows) / sum(w * mib**2 for w, mib, _ in rows)
    return CallCost(round(base, 3), round(slope, 5))


class _Clock:
    """Times single calls into the driver and takes off what the timing itself costs."""

    def __init__(self, cuda: Cuda, repetitions: int) -> None:
        self.cuda = cuda
        self.repetitions = repetitions
        self.budget_bytes = int(cuda.free_bytes() * SPARE)
        self.overhead_us = 0.0
        version = c_int()
        empty = [self.us("cuDriverGetVersion", byref(version)) for _ in range(2000)]
        self.overhead_us = median(empty)

    def us(self, call: str, *args: Any) -> float:
        """Microseconds of one call of the driver, or of the runtime for cudaMalloc and cudaFree."""
        function = self.cuda.entry(call)
        start = perf_counter_ns()
        code = function(*args)
        elapsed = perf_counter_ns() - start
        self.cuda.check(call, code)
        return max(0.0, elapsed / 1000 - self.overhead_us)

    def allocate(self, size_bytes: int) -> tuple[int, float]:
        """(address, microseconds) of one allocation as torch makes it."""
        address = c_uint64()
        call = "cudaMalloc" if self.cuda.runtime else "cuMemAlloc_v2"
        spent = self.us(call, byref(address), size_bytes)
        return address.value, spent

    def free(self, address: int) -> float:
        """Microseconds of giving `address` back."""
        return self.us("cudaFree" if self.cuda.runtime else "cuMemFree_v2", c_uint64(address))

    def burst(self, size_bytes: int) -> int:
        """How many blocks of this size a burst may hold at once."""
        return max(3, min(self.repetitions, self.budget_bytes // size_bytes))


def _malloc_samples(clock: _Clock) -> list[Sample]:
    samples = []
    for mib in MALLOC_MIB:
        size = mib * MIB
        if 3 * size > clock.budget_bytes:
            break
        for _ in range(3):  # the first calls of a size pay for what the driver sets up once
            clock.free(clock.allocate(size)[0])
        pairs = [_pair(clock, size) for _ in range(clock.repetitions)]
        taken = [clock.allocate(size) for _ in range(clock.burst(size))]
        returned = [clock.free(address) for address, _ in taken]
        samples += [
            _sample("cuda_malloc", "alternating", mib, [pair[0] for pair in pairs]),
            _sample("cuda_free", "alternating", mib, [pair[1] for pair in pairs]),
            _sample("cuda_malloc", "burst", mib, [spent for _, spent in taken]),
            _sample("cuda_free", "burst", mib, returned),
        ]
    return samples


def _crowded_samples(clock: _Clock) -> list[Sample]:
    """The calls again while many blocks are alive, to show whether the driver slows down with their number."""
    crowd = [clock.allocate(2 * MIB)[0] for _ in range(min(CROWD, clock.budget_bytes // (4 * MIB)))]
    samples = []
    for mib in MALLOC_MIB[:4]:
        if mib * MIB > clock.budget_bytes // 2:
            break
        pairs = [_pair(clock, mib * MIB) for _ in range(clock.repetitions)]
        samples += [
            _sample("cuda_malloc", "crowded", mib, [pair[0] for pair in pairs]),
            _sample("cuda_free", "crowded", mib, [pair[1] for pair in pairs]),
        ]
    for address in crowd:
        clock.free(address)
    return samples


def _pair(clock: _Clock, size_bytes: int) -> tuple[float, float]:
    address, spent = clock.allocate(size_bytes)
    return spent, clock.free(address)


def _reserve_us(clock: _Clock, size_bytes: int) -> float:
    times = []
    for _ in range(5):
        address = c_uint64()
        times.append(clock.us("cuMemAddressReserve", byref(address), size_bytes, 0, 0, 0))
        clock.us("cuMemAddressFree", address, size_bytes)
    return median(times)


def _page_samples(clock: _Clock, reserve_bytes: int) -> list[Sample]:
    base = c_uint64()
    clock.us("cuMemAddressReserve", byref(base), reserve_bytes, 0, 0, 0)
    samples = []
    for mib in PAGE_MIB:
        if 3 * mib * MIB <= clock.budget_bytes:
            count = clock.burst(mib * MIB)
            times = _mapped(clock, base.value, mib * MIB, count)
            samples += [_sample(call, "burst", mib, spent) for call, spent in times.items()]
    for pages in GROUPS:
        count = clock.burst(PAGE_OF_TORCH_MIB * MIB) // pages * pages
        if count:
            times = _mapped(clock, base.value, PAGE_OF_TORCH_MIB * MIB, count, group=pages)
            samples.append(_sample("set_access", "grouped", pages * PAGE_OF_TORCH_MIB, times["set_access"]))
    clock.us("cuMemAddressFree", base, reserve_bytes)
    return samples


def _mapped(clock: _Clock, base: int, page: int, count: int, *, group: int = 1) -> dict[str, list[float]]:
    """Creates, maps, opens, unmaps and releases `count` pages of `page` bytes in torch's order: times by call."""
    prop, access = clock.cuda.allocation_property(), clock.cuda.access_description()
    times: dict[str, list[float]] = {call: [] for call in CALLS[2:]}
    handles = []
    for index in range(count):
        handle = c_uint64()
        times["mem_create"].append(clock.us("cuMemCreate", byref(handle), page, byref(prop), 0))
        times["mem_map"].append(clock.us("cuMemMap", base + index * page, page, 0, handle, 0))
        handles.append(handle)
    for start in range(base, base + count * page, group * page):
        times["set_access"].append(clock.us("cuMemSetAccess", start, group * page, byref(access), 1))
    for index, handle in enumerate(handles):
        times["mem_unmap"].append(clock.us("cuMemUnmap", base + index * page, page))
        times["mem_release"].append(clock.us("cuMemRelease", handle))
    return times


def _sample(call: str, mode: str, size_mib: int, times: Sequence[float]) -> Sample:
    ordered = sorted(times)
    p90 = ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]
    return Sample(call, mode, size_mib, round(median(ordered), 3), round(p90, 3), len(ordered))


def _on_nvml(uuid: str) -> LiveGpu | None:
    try:
        return next((gpu for gpu in live_gpus() if gpu.uuid == uuid), None)
    except PlatformError:
        return None


def _context_cost(before: LiveGpu | None, after: LiveGpu | None) -> ContextCost:
    if before is None or after is None:
        return ContextCost(None, "NVML does not know this GPU", None)
    others = None
    if after.processes is not None:
        others = sum(process.pid != os.getpid() for process in after.processes)
        own = [process.used_bytes for process in after.processes if process.pid == os.getpid()]
        if own and own[0] is not None:
            return ContextCost(own[0], "NVML's figure for this process", others)
    if before.used_bytes is None or after.used_bytes is None:
        return ContextCost(None, "NVML does not report memory in use", others)
    return ContextCost(after.used_bytes - before.used_bytes, "growth of the memory in use on the GPU", others)
