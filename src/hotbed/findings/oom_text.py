"""Explains an out-of-memory message alone: reads every wording of torch 2.0 to 2.15, and of its HIP and XPU twins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hotbed.errors import UsageError
from hotbed.findings.finding import Finding
from hotbed.findings.lines import own_frame
from hotbed.trace.model import Frame
from hotbed.trace.verdict import Situation, judge
from hotbed.units import format_size

if TYPE_CHECKING:
    from hotbed.trace.verdict import Verdict

_UNITS: Final = {"bytes": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
                 "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}  # fmt: skip
_SIZE: Final = r"([\d.]+)\s*(bytes|[KMGT]i?B|B)\b"
# torch prints what NVML does not know, and a cap that is not set, as 2^64 bytes less some.
_NO_SIZE: Final = 1 << 60
# Sizes are printed with two digits: in GiB that is 5 MiB each, and at most four are added up.
_ROUNDING: Final = 4 * (5 << 20)
_PATTERNS: Final = {
    "requested": (rf"Tried to allocate {_SIZE}", rf"Requested(?: size)?\s*: {_SIZE}", r"trying to allocate (\d+) (bytes)"),
    "total": (rf"total capac(?:i)?ty of {_SIZE}", rf"{_SIZE} total capacity", rf"Device limit\s*: {_SIZE}", r"total: (\d+)()"),
    "free": (rf"of which {_SIZE} is free", rf"{_SIZE} free[;)]", rf"Free \(according to CUDA\)\s*: {_SIZE}", r"\(free: (\d+)()"),
    "process": (rf"this process has {_SIZE} memory in use",),
    "limit": (rf"{_SIZE} allowed;", rf"memory fraction\)\s*: {_SIZE}"),
    "allocated": (rf"{_SIZE} is allocated by PyTorch", rf"{_SIZE} already allocated", rf"Currently allocated\s*: {_SIZE}"),
    "private": (rf"with {_SIZE} allocated in private pools",),
    "cached": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
    "reserved": (rf"{_SIZE} reserved in total by PyTorch", rf"{_SIZE} cached\)"),
}  # fmt: skip
_OTHERS: Final = re.compile(rf"Process (\d+) has {_SIZE} memory in use")
_DEVICE: Final = re.compile(r"\bGPU\s+(\d+)|on device (\d+)")
_RANK: Final = re.compile(r"\[(?:\w+[-_])?rank[ _-]?(\d+)\]")
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_OUT_OF_MEMORY: Final = re.compile(r"out of memory", re.IGNORECASE)
_LIBRARY: Final = re.compile(
    r"outside PyTorch's allocator|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|CUDA error: out of memory|"
    r"HIP error: out of memory|ncclUnhandledCudaError.*out of memory",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class OomMessage:
    """The sizes of a message, in bytes; None where it names none. `processes`: all that it lists, by their numbers."""

    device: int | None
    rank: int | None
    requested: int | None = None
    total: int | None = None
    free: int | None = None
    process: int | None = None
    limit: int | None = None
    allocated: int | None = None
    private: int | None = None
    cached: int | None = None
    reserved: int | None = None
    processes: tuple[tuple[int, int], ...] = ()
    where: Frame | None = None


def explain(text: str) -> Finding:
    """The finding for an out-of-memory message in `text`: alone, within a traceback, prefixed by ranks, cut short.

    Raises UsageError where `text` holds none.
    """
    message = read_message(text)
    if message.requested is None and _LIBRARY.search(text):
        return _outside(message)
    verdict = judge(situation(message))
    return Finding(
        code=verdict.code,
        severity="problem",
        title=verdict.title,
        evidence=(*verdict.sums, *_remarks(message, verdict)),
        fix=verdict.fix,
        bytes=verdict.missing_bytes,
        where=message.where,
        device=message.device or 0,
        rank=message.rank,
    )


def read_message(text: str) -> OomMessage:
    """The sizes in the last out-of-memory message of `text`. Raises UsageError where there is none."""
    joined = _joined(text)
    starts = [
        match.start() for match in re.finditer(r"Tried to allocate|would exceed allowed memory", joined)
    ]
    if not starts and not _OUT_OF_MEMORY.search(joined) and not _LIBRARY.search(joined):
        hint = "paste the message from `CUDA out of memory` on, or the whole traceback"
        raise UsageError("this text holds no out-of-memory message", hint=hint)
    message = joined[starts[-1] :] if starts else joined
    sizes: dict[str, Any] = {name: _first_size(patterns, message) for name, patterns in _PATTERNS.items()}
    processes = tuple(
        (int(number), size)
        for number, value, unit in _OTHERS.findall(message)
        if (size := _bytes(value, unit)) is not None
    )
    return OomMessage(
        device=_number(_DEVICE, message),
        rank=_number(_RANK, text),
        processes=processes,
        where=_where(text),
        **sizes,
    )


def situation(message: OomMessage) -> Situation:
    """What `message` says as a Situation: what can be added up is."""
    reserved = message.reserved
    if reserved is None and message.allocated is not None and message.cached is not None:
        reserved = message.allocated + message.cached
    process, others = _processes(message, reserved)
    return Situation(
        requested_bytes=message.requested,
        allocated_bytes=message.allocated,
        reserved_bytes=reserved,
        free_bytes=message.free,
        total_bytes=message.total,
        process_bytes=process,
        others_bytes=others,
        limit_bytes=message.limit,
        private_bytes=message.private,
        rounding_bytes=_ROUNDING,
    )


def _processes(message: OomMessage, reserved: int | None) -> tuple[int | None, int | None]:
    """Bytes of this process and of all others. In a container this process may be listed by a number only: then it is
    the one that holds at least what is reserved, if there is exactly one."""
    listed = [size for _, size in message.processes]
    if message.process is not None:
        return message.process, sum(listed)
    mine = [size for size in listed if reserved is not None and size >= reserved]
    if len(mine) == 1:
        return mine[0], sum(listed) - mine[0]
    return None, sum(listed) if listed else None


_CONFIDENCE: Final = {
    "certain": "the numbers leave no other cause",
    "likely": "the likely cause",
    "possible": "a possible cause",
}


def _remarks(message: OomMessage, verdict: Verdict) -> list[str]:
    words = []
    if verdict.code != "oom/unexplained":
        words.append(f"{_CONFIDENCE[verdict.confidence]}, as far as the message alone can tell")
    if message.private and verdict.code != "oom/private-pool":
        words.append(
            f"{format_size(message.private)} are allocated in private pools (CUDA graphs); what is free in them the message "
            "does not tell"
        )
    if verdict.code == "oom/fragmentation":
        words.append(
            "frees that wait for a side stream would look the same in the message; a trace tells them apart"
        )
    return words


def _outside(message: OomMessage) -> Finding:
    return Finding(
        code="oom/outside-allocator",
        severity="problem",
        title="a library or the driver ran out of memory, not torch's allocator",
        evidence=(
            "the message comes from a call outside of torch's caching allocator (cuBLAS, cuDNN, NCCL, a kernel's load), "
            "which cannot use what the allocator has reserved and can only take what is free on the device",
        ),
        fix="leave memory to libraries: a cap on the allocator early in the program "
        "(torch.cuda.set_per_process_memory_fraction(0.95)), so that its cache does not take it all",
        where=message.where,
        device=message.device or 0,
        rank=message.rank,
    )


def _joined(text: str) -> str:
    """`text` in one line: terminals, logs and mail fold messages, and comment signs and rank prefixes begin lines anew."""
    lines = (re.sub(r"^\s*(?:\[[^\]]*rank[^\]]*\]:?|[#>|])+\s*", "", line) for line in text.splitlines())
    return re.sub(r"\s+", " ", " ".join(lines))


def _first_size(patterns: tuple[str, ...], message: str) -> int | None:
    for pattern in patterns:
        match = re.search(pattern, message)
        if match is not None:
            return _bytes(match[1], match[2])
    return None


def _bytes(value: str, unit: str) -> int | None:
    """Bytes of a size as printed; None for those that stand for "unknown"."""
    try:
        size = round(float(value) * _UNITS.get(unit.lower(), 1))
    except ValueError:
        return None
    return size if size < _NO_SIZE else None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return next((int(group) for group in match.groups() if group is not None), None) if match else None


def _where(text: str) -> Frame | None:
    """The innermost line of the program itself in a pasted traceback; without one the innermost line."""
    frames = [Frame(name, int(line), function) for name, line, function in _FRAME.findall(text)]
    return own_frame(frames[::-1])
