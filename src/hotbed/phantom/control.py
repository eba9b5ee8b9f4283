"""Talks to the phantom GPU from inside a process that runs on it; stdlib only, importable by path alone.

Replay workers run in the user's Python, where hotbed is not installed: they load this file by its path.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

ABI = 2

USERS = "HOTBED_PHANTOM_USERS"
"""variable that names the folder in which each process with a CUDA context leaves a file"""
USER_FILE = "gpu-user"
"""the name of that file, before a dot and the process id"""

ASCENDING = 0
DESCENDING = 1
DRIVER = 2


class PhantomError(RuntimeError):
    """This process does not run on the phantom, or asked it for something too late."""


@dataclass(frozen=True)
class Counters:
    """What one device has done since the process began; bytes where the name says so, else calls that succeeded.

    The order of the fields is that of `enum phantom_counter` in native/phantom/phantom.h.
    """

    mallocs: int
    frees: int
    creates: int
    releases: int
    maps: int
    unmaps: int
    set_accesses: int
    reserves: int
    address_frees: int
    async_mallocs: int
    async_frees: int
    host_allocs: int
    host_frees: int
    ooms: int
    misuses: int
    device_syncs: int
    event_syncs: int
    stream_syncs: int
    used_bytes: int
    peak_used_bytes: int
    malloc_bytes: int
    free_bytes: int
    create_bytes: int
    host_bytes: int
    reserve_bytes: int


_COUNTERS = len(fields(Counters))

LIBRARIES = (
    "kernels",
    "modules",
    "cublas",
    "cublaslt",
    "cudnn",
    "cusolver",
    "cusparse",
    "cusparselt",
    "cufft",
    "curand",
    "nvrtc",
    "nccl",
    "cublas handles",
    "cudnn handles",
    "streams",
)
"""Names of enum phantom_library, in its order."""


class WorkspaceEntry(ctypes.Structure):
    """struct phantom_workspace: device memory lent to a library; bytes, and microseconds since 1970."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("alternative_bytes", ctypes.c_uint64 * 3),
        ("unix_us", ctypes.c_int64),
        ("library", ctypes.c_int32),
        ("device", ctypes.c_int32),
    )


class ReadHead(ctypes.Structure):
    """struct phantom_read: one read of device memory; `stored` bytes follow it in the log, none if all were zero."""

    _fields_ = (
        ("thread", ctypes.c_int32),
        ("certain", ctypes.c_int32),
        ("size", ctypes.c_uint64),
        ("stored", ctypes.c_uint64),
    )


class _Answer(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char_p), ("size", ctypes.c_uint64), ("number", ctypes.c_int32))


MOST_ANSWERS = 16
"""how many answers the phantom holds for one thread"""


class InflowEntry(ctypes.Structure):
    """struct phantom_inflow: a copy from the host to a device; bytes, and microseconds since 1970."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("unix_us", ctypes.c_int64),
    )


class Control:
    """The phantom of this process. Raises PhantomError where there is none.

    Settings made before a fork hold in the child; what was allocated does not.
    """

    def __init__(self, library: str = "libcuda.so.1") -> None:
        # PyDLL keeps the interpreter lock: the calls are shorter than giving it up, and none of them waits for
        # Python code.
        try:
            self._library = ctypes.PyDLL(library)
            abi = self._library.phantom_abi()
        except (OSError, AttributeError):
            raise PhantomError(
                f"{library} is not hotbed's phantom: start this with `hotbed phantom run`"
            ) from None
        if abi != ABI:
            raise PhantomError(
                f"the phantom speaks ABI {abi}, this hotbed {ABI}: they come from different installs"
            )
        self._declare()

    def _declare(self) -> None:
        u64 = ctypes.c_uint64
        pointer = ctypes.POINTER(u64)
        self._library.phantom_counters.argtypes = [ctypes.c_int, pointer, ctypes.c_int]
        self._library.phantom_set_total.argtypes = [u64]
        self._library.phantom_set_recorded_segments.argtypes = [pointer, pointer, ctypes.c_int]
        self._library.phantom_last_event.argtypes = [pointer]
        self._library.phantom_last_event.restype = u64
        self._library.phantom_release_event.argtypes = [u64, u64]
        self._library.phantom_unmodelled_name.restype = ctypes.c_char_p
        self._library.phantom_libraries.argtypes = [pointer, ctypes.c_int]
        self._library.phantom_workspaces.restype = ctypes.c_int64
        self._library.phantom_workspaces.argtypes = [
            ctypes.POINTER(WorkspaceEntry),
            ctypes.c_int64,
            ctypes.c_int64,
        ]
        self._library.phantom_inflows.restype = ctypes.c_int64
        self._library.phantom_inflows.argtypes = [ctypes.POINTER(InflowEntry), ctypes.c_int64, ctypes.c_int64]
        self._library.phantom_remark.restype = ctypes.c_char_p
        self._declare_reads()
        self._library.phantom_drive.restype = ctypes.c_int64
        self._library.phantom_drive.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]

    def _declare_reads(self) -> None:
        u64, library = ctypes.c_uint64, self._library
        library.phantom_stop_at_uncertain_read.argtypes = [ctypes.c_char_p]
        library.phantom_read_log.restype = ctypes.c_int64
        library.phantom_read_log.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.phantom_answer_reads.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        library.phantom_hand_answers.argtypes = [ctypes.POINTER(_Answer), ctypes.c_int]
        library.phantom_reads_so_far.restype = ctypes.c_int64
        library.phantom_reads_so_far.argtypes = [ctypes.POINTER(ctypes.c_int32)]
        library.phantom_certain.argtypes = [u64, ctypes.c_void_p, u64]
        library.phantom_pass_over.argtypes = [u64, u64]
        library.phantom_pass_over.restype = None

    def counters(self, device: int = 0) -> Counters:
        """The counters of `device`, all zero for a device that does not exist."""
        values = (ctypes.c_uint64 * _COUNTERS)()
        self._library.phantom_counters(device, values, _COUNTERS)
        return Counters(*values)

    def set_total(self, total_bytes: int) -> None:
        """Sets the memory of every device. Raises PhantomError once anything has been allocated."""
        if self._library.phantom_set_total(total_bytes):
            raise PhantomError("the memory of the phantom can change only before the first allocation")

    def set_address_rule(self, rule: int) -> None:
        """How cudaMalloc chooses addresses: ASCENDING, DESCENDING or DRIVER (the default)."""
        self._library.phantom_set_address_rule(rule)

    def set_recorded_segments(self, addresses: Sequence[int], sizes: Sequence[int]) -> None:
        """Makes cudaMalloc return `addresses` for as long as it is asked for exactly `sizes`, in this order."""
        count = len(addresses)
        if count != len(sizes):
            raise ValueError(f"{count} addresses for {len(sizes)} sizes")
        array = ctypes.c_uint64 * count
        self._library.phantom_set_recorded_segments(array(*addresses), array(*sizes), count)

    def hold_events(self, hold: bool) -> None:
        """True: events recorded from now on stay "not ready" until released or waited for."""
        self._library.phantom_hold_events(hold)

    def last_event(self) -> tuple[int, int]:
        """(event, sequence) of this thread's last recording; event 0 if there was none."""
        sequence = ctypes.c_uint64()
        event: int = self._library.phantom_last_event(ctypes.byref(sequence))
        return event, sequence.value

    def release_event(self, event: int, sequence: int) -> None:
        """Completes that recording; does nothing if the event has been recorded again since."""
        self._library.phantom_release_event(event, sequence)

    def unmodelled(self) -> list[str]:
        """Entry points called so far that the phantom does not model, in the order of their first call."""
        count = self._library.phantom_unmodelled_count()
        return [self._library.phantom_unmodelled_name(i).decode() for i in range(count)]

    def libraries(self) -> dict[str, int]:
        """Calls into each CUDA library that was used so far; LIBRARIES has the names."""
        calls = (ctypes.c_uint64 * len(LIBRARIES))()
        self._library.phantom_libraries(calls, len(LIBRARIES))
        return {name: count for name, count in zip(LIBRARIES, calls, strict=True) if count}

    def workspaces(self) -> list[WorkspaceEntry]:
        """Device memory that was lent to libraries so far, in the order of the calls."""
        count = self._library.phantom_workspaces(None, 0, 0)
        entries = (WorkspaceEntry * count)()
        self._library.phantom_workspaces(entries, 0, count)
        return list(entries)

    def inflows(self) -> list[InflowEntry]:
        """Copies from the host to devices so far, in their order; the first 200,000 of them."""
        count = self._library.phantom_inflows(None, 0, 0)
        entries = (InflowEntry * count)()
        self._library.phantom_inflows(entries, 0, count)
        return list(entries)

    def remarks(self) -> list[str]:
        """Sentences of the phantom that lower the confidence in this run."""
        return [self._library.phantom_remark(i).decode() for i in range(self._library.phantom_remark_count())]

    def stop_at_uncertain_read(self, note: str | None) -> None:
        """Makes the first read of device bytes that are not certain write the file `note` and end this process with
        exit status 77; None turns that off."""
        self._library.phantom_stop_at_uncertain_read(note.encode() if note is not None else None)

    def log_reads(self, on: bool) -> None:
        """True: keeps every read of device memory from now on for read_log()."""
        self._library.phantom_log_reads(on)

    def read_log(self) -> bytes:
        """For each thread in turn its reads in order: a ReadHead and the bytes that it stores."""
        size = self._library.phantom_read_log(None, 0)
        log = ctypes.create_string_buffer(size)
        self._library.phantom_read_log(log, size)
        return log.raw

    def answer_reads(self, log: bytes) -> None:
        """Answers the n-th read of each thread as in `log`. Raises ValueError if that is none."""
        if self._library.phantom_answer_reads(log, len(log)):
            raise ValueError(f"{len(log)} bytes that are no log of reads")

    def hand_answers(self, answers: Sequence[bytes | int]) -> object:
        """Answers the reads that this thread is about to make; the last answer holds for any further one.

        An integer fits a read of up to 8 bytes, bytes one of their length. No answers take back what was handed over
        before. Keep the result until then.
        """
        chosen = answers[:MOST_ANSWERS]
        handed = (_Answer * len(chosen))()
        for entry, answer in zip(handed, chosen, strict=True):
            entry.number = isinstance(answer, int)
            entry.bytes = answer.to_bytes(8, "little", signed=True) if isinstance(answer, int) else answer
            entry.size = 8 if isinstance(answer, int) else len(answer)
        self._library.phantom_hand_answers(handed, len(chosen))
        return handed

    def reads_so_far(self) -> tuple[int, int]:
        """(number, count): how often this thread has read, and its number, -1 before its first read."""
        thread = ctypes.c_int32()
        count: int = self._library.phantom_reads_so_far(ctypes.byref(thread))
        return thread.value, count

    def certain_bytes(self, address: int, size: int) -> bytes | None:
        """What lies at a device address, if the host wrote it and no kernel has run since."""
        content = ctypes.create_string_buffer(size)
        return content.raw if self._library.phantom_certain(address, content, size) else None

    def pass_over(self, state: int, draws: int) -> None:
        """Makes the state of a CPU generator that lies at address `state` what it is after `draws` more numbers."""
        self._library.phantom_pass_over(state, draws)

    def drive(
        self,
        allocations: array[int],
        sizes: array[int],
        span: tuple[int, int],
        pointers: ctypes.Array[ctypes.c_void_p],
        functions: tuple[int, int],
    ) -> int:
        """Runs the ops of `span` (begin, end) in C: op i allocates sizes[i] bytes, or frees where that is 0.

        `allocations` (type code i) numbers the entries of `pointers`, `sizes` has type code q, `functions` are the
        addresses of torch's stable raw_alloc and raw_delete. Returns the op that failed, or the end.
        """
        done: int = self._library.phantom_drive(
            allocations.buffer_info()[0], sizes.buffer_info()[0], *span, pointers, *functions
        )
        return done
