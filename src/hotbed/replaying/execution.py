"""Executes one program through torch's allocator on the phantom GPU; what a replay's forked child does.

Stdlib only, and torch handed in: the worker loads this file by its path, in a Python that may have no hotbed.
"""

from __future__ import annotations

import ctypes
import operator
import pickle
import struct
import sys
import time
import warnings
from array import array
from pathlib import Path
from typing import Any

# Values of program.Op; PLAIN marks a run of ALLOC and FREE in the default pool on one stream.
ALLOC, FREE, TRACKED_ALLOC, PENDING_FREE, COMPLETE, EMPTY_CACHE, END_POOL, BEGIN, TRIED_ALLOC, MARK, PLAIN = (
    range(11)
)
# Values of enum phantom_address_rule.
ADDRESS_RULES = {"ascending": 0, "descending": 1, "driver": 2}
# Counts of torch and of the phantom that go on over the whole process; peaks and levels are no such counts.
TORCH_COUNTS = (
    "num_device_alloc",
    "num_device_free",
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
)
PHANTOM_LEVELS = ("used_bytes", "peak_used_bytes")
# Stands for "another stream" in record_stream: a value that no recorded stream has.
SIDE_STREAM = 0x7FFFFFF0


class Program:
    """The columns of one program and its runs."""

    def __init__(self, head: dict[str, Any], blob: bytes) -> None:
        self.allocations: int = head["allocations"]
        self.pools = [tuple(pool) for pool in head["pools"]]
        self.segments: list[list[int]] = head["segments"]
        at = 0
        columns = {}
        for name, (typecode, length) in head["columns"].items():
            columns[name] = array(typecode)
            columns[name].frombytes(blob[at : at + length])
            at += length
        self.allocation, self.size, self.pool = columns["allocation"], columns["size"], columns["pool"]
        self.runs = list(
            zip(
                columns["run_kind"],
                columns["run_begin"],
                columns["run_end"],
                columns["run_stream"],
                strict=False,
            )
        )


class Allocator:
    """torch's allocator, called in the cheapest way this torch offers."""

    def __init__(self, torch: Any, control: Any, program: Program) -> None:
        self.torch, self.control, self.program = torch, control, program
        native = torch._C
        self.alloc = native._cuda_cudaCachingAllocator_raw_alloc
        self.delete = native._cuda_cudaCachingAllocator_raw_delete
        self.pools = Pools(torch)
        self.stable = stable_functions(torch)
        self.pointers: Any = (ctypes.c_void_p * (program.allocations + 1))()
        self.tensors: dict[int, Any] = {}
        self.pending: dict[int, tuple[int, int]] = {}
        self.side_stream: Any = None
        self.current_stream = 0
        self.refused: list[int] = []
        """ops whose request failed as it did in the recording"""
        self.baseline = Baseline(torch, control)

    def run(self, kind: int, begin: int, end: int, stream: int) -> int:
        """Executes one run; returns the index of the op that failed, or `end`."""
        if kind == PLAIN:
            return self.run_plain(begin, end, stream)
        try:
            self.run_single(kind, begin, stream)
        except self.torch.cuda.OutOfMemoryError:
            return begin
        return end

    def run_plain(self, begin: int, end: int, stream: int) -> int:
        if self.stable is None:
            return self.run_plain_in_python(begin, end, stream)
        self.set_stream(stream)
        program = self.program
        done: int = self.control.drive(
            program.allocation, program.size, (begin, end), self.pointers, self.stable
        )
        return done

    def run_plain_in_python(self, begin: int, end: int, stream: int) -> int:
        alloc, delete, pointers = self.alloc, self.delete, self.pointers
        # Fresh lists: reading shared ones would write reference counts and so copy their pages after the fork.
        sizes = iter(self.program.size[begin:end].tolist())
        try:
            for number, size in zip(self.program.allocation[begin:end].tolist(), sizes, strict=False):
                if size:
                    pointers[number] = alloc(size, stream)
                else:
                    delete(pointers[number])
        except self.torch.cuda.OutOfMemoryError:
            return end - operator.length_hint(sizes) - 1
        return end

    def set_stream(self, stream: int) -> None:
        if stream != self.current_stream:
            self.torch.cuda.set_stream(self.external(stream))
            self.current_stream = stream

    def external(self, stream: int) -> Any:
        return self.torch.cuda.ExternalStream(stream) if stream else self.torch.cuda.default_stream()

    def run_single(self, kind: int, index: int, stream: int) -> None:
        number, size = self.program.allocation[index], self.program.size[index]
        if kind == ALLOC:
            self.in_pool(index, lambda: self.keep_pointer(number, self.alloc(size, stream)))
        elif kind == TRACKED_ALLOC:
            self.in_pool(index, lambda: self.allocate_tensor(number, size, stream))
        elif kind == PENDING_FREE:
            self.free_later(number)
        elif kind == COMPLETE:
            if number in self.pending:
                self.control.release_event(*self.pending.pop(number))
        elif kind == EMPTY_CACHE:
            self.torch.cuda.empty_cache()
        elif kind == END_POOL:
            self.pools.end(self.program.pools[self.program.pool[index]])
        elif kind == BEGIN:
            self.baseline.take()
        elif kind == TRIED_ALLOC:
            self.try_to_allocate(index, size, stream)

    def try_to_allocate(self, index: int, size: int, stream: int) -> None:
        try:
            self.in_pool(index, lambda: self.delete(self.alloc(size, stream)))
        except self.torch.cuda.OutOfMemoryError:
            self.refused.append(index)

    def in_pool(self, index: int, allocate: Any) -> None:
        pool = self.program.pools[self.program.pool[index]]
        if pool == (0, 0):
            allocate()
        else:
            self.pools.divert(pool, allocate)

    def keep_pointer(self, number: int, pointer: int) -> None:
        self.pointers[number] = pointer

    def allocate_tensor(self, number: int, size: int, stream: int) -> None:
        self.set_stream(stream)
        self.tensors[number] = self.torch.empty(size, dtype=self.torch.uint8, device="cuda")

    def free_later(self, number: int) -> None:
        """Frees a tensor that a side stream still uses; the event stays open until COMPLETE."""
        tensor = self.tensors.pop(number, None)
        if tensor is None:
            return
        if self.side_stream is None:
            self.side_stream = self.torch.cuda.ExternalStream(SIDE_STREAM)
        tensor.record_stream(self.side_stream)
        self.control.hold_events(True)
        del tensor
        self.pending[number] = self.control.last_event()
        self.control.hold_events(False)


class Pools:
    """The private pools of a replay by their recorded id. Each has one reference until it is ended."""

    def __init__(self, torch: Any) -> None:
        native = torch._C
        self.new_mempool = getattr(torch.cuda, "MemPool", None)
        self.begin = getattr(native, "_cuda_beginAllocateCurrentThreadToPool", None) or (
            native._cuda_beginAllocateToPool
        )
        self.stop = getattr(native, "_cuda_endAllocateToPool", None) or (
            native._cuda_endAllocateCurrentStreamToPool
        )
        self.release = native._cuda_releasePool
        self.mempools: dict[tuple[int, int], Any] = {}
        self.graph_pools: set[tuple[int, int]] = set()
        self.known: dict[tuple[int, int], tuple[int, int]] = {}
        """recorded id → id here, ended pools included"""

    def divert(self, pool: tuple[int, int], allocate: Any) -> None:
        """Calls `allocate` with its requests going to `pool`."""
        own = self.id_of(pool)
        self.begin(0, own)
        try:
            allocate()
        finally:
            self.stop(0, own)
            self.release(0, own)

    def id_of(self, pool: tuple[int, int]) -> tuple[int, int]:
        """This process's id of `pool`, which is made on first use: (0, n) was a MemPool, (n, 0) a graph's."""
        if pool[0] == 0 and self.new_mempool is not None:
            if pool not in self.mempools:
                self.mempools[pool] = self.new_mempool()
                self.known[pool] = self.mempools[pool].id
            return self.known[pool]
        if pool not in self.graph_pools:
            self.graph_pools.add(pool)
            self.begin(0, pool)
            self.stop(0, pool)
        return pool

    def end(self, pool: tuple[int, int]) -> None:
        """Gives up the reference: a MemPool then empties itself, a graph's memory goes at the next occasion."""
        if pool in self.graph_pools:
            self.graph_pools.discard(pool)
            self.release(0, pool)
        self.mempools.pop(pool, None)


class Baseline:
    """What torch and the phantom had counted when the recorded part of a program began."""

    def __init__(self, torch: Any, control: Any) -> None:
        self.torch, self.control = torch, control
        self.history = False
        """whether torch is to record its history from then on"""
        self.stats: dict[str, int] = {}
        self.counts = dict.fromkeys(vars(control.counters()), 0)

    def take(self) -> None:
        """Here and now; peaks begin anew."""
        self.torch.cuda.reset_peak_memory_stats()
        stats = self.torch.cuda.memory_stats()
        self.stats = {name: stats.get(name, 0) for name in TORCH_COUNTS}
        counts = vars(self.control.counters())
        self.counts = {name: 0 if name in PHANTOM_LEVELS else count for name, count in counts.items()}
        if self.history:
            self.record_history()

    def record_history(self) -> None:
        self.torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=sys.maxsize)

    def counters(self) -> list[int]:
        """The phantom's counters of device 0 since then, in the order of Counters' fields."""
        return [count - self.counts[name] for name, count in vars(self.control.counters()).items()]

    def statistics(self) -> dict[str, int]:
        """torch's statistics that a result carries, counts since then."""
        stats = self.torch.cuda.memory_stats()
        return {
            key: value - self.stats.get(key, 0)
            for key, value in stats.items()
            if ".all." in key or "." not in key
        }


def stable_functions(torch: Any) -> tuple[int, int] | None:
    """Addresses of raw_alloc and raw_delete in torch's stable C interface (2.10 and later), else None."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cuda.so"))
    try:
        functions = (
            library.aoti_torch_cuda_caching_allocator_raw_alloc,
            library.aoti_torch_cuda_caching_allocator_raw_delete,
        )
    except AttributeError:
        return None
    alloc, delete = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return alloc, delete


def apply_settings(torch: Any, settings: str) -> None:
    """Sets what the environment variable would set; equal to it as long as the allocator was never used."""
    if settings:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.cuda.memory._set_allocator_settings(settings)


def apply_cap(torch: Any, cap_bytes: int | None) -> int:
    """Limits the process to `cap_bytes` exactly; returns the device's total bytes."""
    total: int = torch.cuda.get_device_properties(0).total_memory
    if cap_bytes is not None and cap_bytes < total:
        fraction = cap_bytes / total
        while int(fraction * total) < cap_bytes:
            fraction = next_above(fraction)
        torch.cuda.set_per_process_memory_fraction(fraction)
    return total


def next_above(value: float) -> float:
    """The next larger double of a positive one (math.nextafter needs no import beyond struct this way)."""
    bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
    result: float = struct.unpack(">d", struct.pack(">q", bits + 1))[0]
    return result


def choose_addresses(control: Any, rule: str, segments: list[list[int]]) -> None:
    """ "recorded": the recorded addresses while the sizes agree, then the driver's rule."""
    control.set_address_rule(ADDRESS_RULES.get(rule, ADDRESS_RULES["driver"]))
    if rule == "recorded":
        addresses, sizes = zip(*segments, strict=False) if segments else ((), ())
        control.set_recorded_segments(addresses, sizes)


def run_job(torch: Any, control: Any, program: Program, job: dict[str, Any]) -> dict[str, Any]:
    """One replay in a fresh child: settings, cap, addresses, ops, counters."""
    apply_settings(torch, job["settings"])
    torch.cuda.init()
    total = apply_cap(torch, job["cap_bytes"])
    choose_addresses(control, job["addresses"], program.segments)
    allocator = Allocator(torch, control, program)
    allocator.baseline.history = job["history"]
    if not any(run[0] == BEGIN for run in program.runs):
        allocator.baseline.take()
    started = time.perf_counter()
    failed, marks = execute(allocator, job["stop_op"])
    seconds = time.perf_counter() - started
    stats = allocator.baseline.statistics()
    # Only the native allocator counts its OOMs; any other failure would be a fault of the replay.
    counted = stats["num_ooms"] > 0 or stats.get("num_oom_rejections", 0) > 0
    if failed is not None and not counted and torch.cuda.get_allocator_backend() == "native":
        raise RuntimeError(f"op {failed} failed without an out-of-memory error")
    if job["snapshot"]:
        with open(job["snapshot"], "wb") as file:
            pickle.dump(torch.cuda.memory._snapshot(), file)
    return {
        "failed_op": failed,
        "total_bytes": total,
        "seconds": seconds,
        "stats": stats,
        "counters": allocator.baseline.counters(),
        "marks": marks,
        "refused": allocator.refused,
        "pools": [allocator.pools.known.get(pool, pool) for pool in program.pools],
    }


def execute(allocator: Allocator, stop_op: int | None) -> tuple[int | None, list[list[int]]]:
    """Runs the program up to and including `stop_op`; (index of the op that met an OOM, counters at marks)."""
    marks = []
    for kind, begin, end, stream in allocator.program.runs:
        if kind == MARK:
            marks.append(allocator.baseline.counters())
            continue
        last = end if stop_op is None else min(end, stop_op + 1)
        done = allocator.run(kind, begin, last, stream)
        if done < last:
            return done, marks
        if stop_op is not None and last > stop_op:
            break
    return None, marks
