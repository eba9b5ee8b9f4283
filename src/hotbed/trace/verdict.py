"""Why a request ran out of memory, by arithmetic alone. Standard library only: this also runs in the user's process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hotbed.units import MIB, format_size

Cause = Literal[
    "oom/capacity",
    "oom/fragmentation",
    "oom/pending-free",
    "oom/private-pool",
    "oom/other-process",
    "oom/cap-too-low",
    "oom/unexplained",
]
Confidence = Literal["certain", "likely", "possible"]
"""The numbers leave no other cause; a number that could change the answer is missing; several are."""

_SMALL: Final = MIB
_LARGE: Final = 10 * MIB
_SMALL_SEGMENT: Final = 2 * MIB
_LARGE_SEGMENT: Final = 20 * MIB
"""Source: kSmallSize, kMinLargeAlloc, kSmallBuffer, kLargeBuffer; allocator-semantics 1.2"""
_USUAL: Final = 0.10
"""Below this share of what is within reach, free memory in pieces is what any job has: the memory is full. Of twelve jobs
recorded on an H200 those of fixed sizes lost 4 to 17 %, so settings may help a little even then."""
_CROWDED: Final = 0.05
"""Share of the device from which on other processes matter; a desktop takes less."""
_CONTEXT: Final = 1 << 30
"""More than any CUDA context with its libraries (0.5 GiB on an H200, 0.9 GiB with libraries)."""


@dataclass(frozen=True)
class Situation:
    """What was true when a request failed. Bytes; None is unknown.

    `free_bytes` and `total_bytes` are the device's; `process_bytes` what this process uses of it, in and outside of the
    allocator; `others_bytes` what other processes use; `limit_bytes` a cap of the process. Of the memory that is reserved
    but not allocated, `pending_bytes` waits for other streams, `private_free_bytes` is free in private pools that the
    request may not use, `stream_free_bytes` is free for other streams only. `largest_hole_bytes` is the largest free block
    that the request could have used. The two `..._suffices` say whether that part alone would have served the request;
    None: only its size can tell.
    """

    requested_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    process_bytes: int | None = None
    others_bytes: int | None = None
    limit_bytes: int | None = None
    pending_bytes: int | None = None
    private_free_bytes: int | None = None
    stream_free_bytes: int | None = None
    largest_hole_bytes: int | None = None
    pending_suffices: bool | None = None
    private_suffices: bool | None = None
    private_bytes: int | None = None
    """allocated in private pools"""
    private_reserved_bytes: int | None = None
    """of private pools that the request may not use"""
    rounding_bytes: int = 0
    """by how much the sums may be wrong because the sizes were printed rounded"""

    @property
    def cached_bytes(self) -> int | None:
        """Reserved and not allocated."""
        if self.reserved_bytes is None or self.allocated_bytes is None:
            return None
        return max(self.reserved_bytes - self.allocated_bytes, 0)

    @property
    def outside_bytes(self) -> int | None:
        """Of this process, but not of the allocator: CUDA context, libraries, NCCL."""
        if self.process_bytes is None or self.reserved_bytes is None:
            return None
        return max(self.process_bytes - self.reserved_bytes, 0)

    @property
    def elsewhere_bytes(self) -> int | None:
        """Used on the device by others, as far as known; else what lies outside of this allocator and is more than a
        context: other processes, or this one past its allocator."""
        if self.others_bytes is not None:
            return self.others_bytes
        if self.process_bytes is not None or None in (self.total_bytes, self.free_bytes, self.reserved_bytes):
            return None
        outside = (self.total_bytes or 0) - (self.free_bytes or 0) - (self.reserved_bytes or 0)
        return max(outside - _CONTEXT, 0)

    @property
    def is_crowded(self) -> bool:
        """Whether others hold a part of the device that matters."""
        elsewhere, total = self.elsewhere_bytes or 0, self.total_bytes or 0
        return elsewhere >= max(_CROWDED * total, 1)

    @property
    def is_capped(self) -> bool:
        """Whether a cap below the device's own size is in force."""
        return self.limit_bytes is not None and (
            self.total_bytes is None or self.limit_bytes < self.total_bytes
        )

    @property
    def room_bytes(self) -> int | None:
        """What the driver, and the cap, would still have given."""
        rooms = [] if self.free_bytes is None else [self.free_bytes]
        if self.is_capped and self.limit_bytes is not None and self.reserved_bytes is not None:
            rooms.append(max(self.limit_bytes - self.reserved_bytes, 0))
        return min(rooms, default=None)


@dataclass(frozen=True)
class Verdict:
    """The cause, the sums that show it, and what would have made the request fit. `missing_bytes`: by how much it did
    not; None where that cannot be told."""

    code: Cause
    title: str
    sums: tuple[str, ...]
    fix: str
    confidence: Confidence
    missing_bytes: int | None = None


def bytes_at_fault(facts: Situation, verdict: Verdict) -> int | None:
    """What waits, what others or private pools hold, the cap; where it is none of these, the request that failed."""
    sizes = {
        "oom/pending-free": facts.pending_bytes,
        "oom/other-process": facts.elsewhere_bytes,
        "oom/private-pool": facts.private_reserved_bytes or facts.private_bytes,
        "oom/cap-too-low": facts.limit_bytes,
    }
    return sizes.get(verdict.code) or facts.requested_bytes


def from_driver(requested_bytes: int) -> int:
    """What torch asks the driver for to serve a request, in default settings."""
    if requested_bytes <= _SMALL:
        return _SMALL_SEGMENT
    if requested_bytes < _LARGE:
        return _LARGE_SEGMENT
    return -(-requested_bytes // _SMALL_SEGMENT) * _SMALL_SEGMENT


def judge(facts: Situation) -> Verdict:
    """The cause that the sums point to. Causes that lie in the device come first, then those in what is reserved."""
    wanted, allocated = facts.requested_bytes, facts.allocated_bytes
    if wanted is None or allocated is None:
        return _incomplete(facts)
    room = facts.room_bytes
    if room is None:
        short = allocated + wanted - (facts.total_bytes or allocated + wanted)
        return _beyond(facts, short) if short > 0 else _incomplete(facts)
    if room >= from_driver(wanted):
        return _by_the_cap(facts) if facts.is_capped else _unexplained(facts)
    short = wanted - (facts.cached_bytes or 0) - room
    return _beyond(facts, short) if short > 0 else _within(facts, from_driver(wanted) - room)


def _beyond(facts: Situation, short: int) -> Verdict:
    """Live memory and the request together pass what the process can reach: `short` bytes are missing."""
    wanted, free = facts.requested_bytes or 0, facts.free_bytes
    confidence: Confidence = (
        "certain" if short > facts.rounding_bytes and facts.others_bytes is not None else "likely"
    )
    if facts.is_capped and (free is None or free >= short):
        title = f"the cap of {_size(facts.limit_bytes)} is {_size(short)} too low for this request"
        return Verdict(
            "oom/cap-too-low", title, _sums(facts), _raise_the_cap(facts, short), confidence, short
        )
    if facts.is_crowded and (facts.elsewhere_bytes or 0) >= short:
        return _crowded(facts, short, confidence)
    if _is_in_graphs(facts):
        return _held_by_graphs(facts, short)
    title = f"this needs {_size(short)} more than there is: {_size(wanted)} on top of {_size(facts.allocated_bytes)} in use"
    return Verdict("oom/capacity", title, _sums(facts), _need_less(short), confidence, short)


def _raise_the_cap(facts: Situation, short: int) -> str:
    return (
        f"raise the cap (set_per_process_memory_fraction) by at least {_size(short)}; the device has "
        f"{_size(facts.free_bytes)} free"
    )


def _by_the_cap(facts: Situation) -> Verdict:
    """The device had room and how much is reserved is not known: only the cap is left."""
    title = f"the cap of {_size(facts.limit_bytes)} refused it, the device had {_size(facts.free_bytes)} free"
    fix = _raise_the_cap(facts, from_driver(facts.requested_bytes or 0))
    return Verdict("oom/cap-too-low", title, _sums(facts), fix, "likely")


def _crowded(facts: Situation, short: int, confidence: Confidence) -> Verdict:
    known = facts.others_bytes is not None
    who = "other processes hold" if known else "other processes, or this one outside of its allocator, hold"
    return Verdict(
        "oom/other-process",
        f"{who} {_size(facts.elsewhere_bytes)} of the device; {_size(short)} were missing",
        _sums(facts),
        "end the other processes (nvidia-smi names them) or use another device; the allocator of this one is not at fault",
        confidence,
        short,
    )


def _is_in_graphs(facts: Situation) -> bool:
    """Whether most of what is allocated lies in private pools, and nobody knows what is free there."""
    return facts.private_free_bytes is None and 2 * (facts.private_bytes or 0) > (facts.allocated_bytes or 0)


def _held_by_graphs(facts: Situation, missing: int) -> Verdict:
    title = (
        f"private pools of CUDA graphs hold {_size(facts.private_bytes)} of {_size(facts.allocated_bytes)} allocated; "
        f"{_size(missing)} were missing"
    )
    return Verdict("oom/private-pool", title, _sums(facts), _SHARE_POOLS, "possible", missing)


def _need_less(short: int) -> str:
    return (
        f"need less at this point, by {_size(short)} and a margin: smaller batch or sequence, activation checkpointing, lower "
        "precision, sharding; no allocator setting can help"
    )


def _within(facts: Situation, gap: int) -> Verdict:
    """Free memory would have sufficed, but `gap` bytes of it were in the wrong place."""
    cached = facts.cached_bytes or 0
    pending, private = facts.pending_bytes or 0, facts.private_free_bytes or 0
    rest = max(cached - pending - private, 0)
    causes = [
        (_suffices(facts.pending_suffices, pending, gap), pending, _pending),
        (_suffices(facts.private_suffices, private, gap), private, _private),
        (rest >= gap, rest, _fragmented),
    ]
    sufficient, size, explain = max(causes, key=lambda cause: (cause[0], cause[1]))
    known = facts.pending_bytes is not None and facts.private_free_bytes is not None
    if explain is _fragmented:
        ceiling = (facts.reserved_bytes or 0) + (facts.room_bytes or 0)
        is_usual = cached < _USUAL * ceiling
        if is_usual and facts.is_crowded and (facts.elsewhere_bytes or 0) >= gap:
            return _crowded(facts, gap, "likely")
        if _is_in_graphs(facts):
            return _held_by_graphs(facts, gap)
        if is_usual:
            return _full(facts, gap, ceiling)
    return explain(facts, gap, size, "certain" if known and sufficient else "likely")


def _suffices(known: bool | None, size: int, gap: int) -> bool:
    return size >= gap if known is None else known


def _pending(facts: Situation, gap: int, size: int, confidence: Confidence) -> Verdict:
    return Verdict(
        "oom/pending-free",
        f"{_size(size)} are freed, but wait for another stream; {_size(gap)} were missing",
        _sums(facts),
        "let the streams meet before the memory is needed: wait for the side stream (wait_stream, synchronize) before the "
        "next large allocation, or drop record_stream where an event already orders the streams; TORCH_NCCL_AVOID_RECORD_STREAMS=1 "
        "for collectives of older torch",
        confidence,
        gap,
    )


_SHARE_POOLS: Final = (
    "let graphs share one pool (torch.cuda.graph(pool=...)), capture the largest first, drop graphs that are no longer "
    "replayed, or make this request inside the pool"
)


def _private(facts: Situation, gap: int, size: int, confidence: Confidence) -> Verdict:
    return Verdict(
        "oom/private-pool",
        f"{_size(size)} are free, but in private pools of CUDA graphs or a MemPool; {_size(gap)} were missing",
        _sums(facts),
        _SHARE_POOLS,
        confidence,
        gap,
    )


def _fragmented(facts: Situation, gap: int, size: int, confidence: Confidence) -> Verdict:
    hole = facts.largest_hole_bytes
    largest = "" if hole is None else f", the largest usable piece {_size(hole)}"
    return Verdict(
        "oom/fragmentation",
        f"{_size(size)} are reserved and free, but in pieces{largest}; {_size(gap)} were missing in one piece",
        _sums(facts),
        "keep free memory in one piece: expandable_segments:True, or settings found by `hotbed tune` for this job",
        confidence,
        gap,
    )


def _full(facts: Situation, gap: int, ceiling: int) -> Verdict:
    allocated = facts.allocated_bytes or 0
    return Verdict(
        "oom/capacity",
        f"the memory is full: {_size(allocated)} of {_size(ceiling)} are in use, {_size(gap)} were missing",
        (
            *_sums(facts),
            f"what is free in pieces ({_size(facts.cached_bytes)}) is no more than any job has",
        ),
        _need_less(gap),
        "likely",
        gap,
    )


def _unexplained(facts: Situation) -> Verdict:
    return Verdict(
        "oom/unexplained",
        f"the driver refused {_size(facts.requested_bytes)} although {_size(facts.free_bytes)} were free",
        _sums(facts),
        "try once more: another process may have held the memory at that moment, or a side stream finished since; if it "
        "stays, look for limits outside of torch (MIG slice, container, WSL, driver limit on one allocation)",
        "possible",
    )


def _incomplete(facts: Situation) -> Verdict:
    known = _sums(facts)
    return Verdict(
        "oom/unexplained",
        "the cause cannot be told: the sizes that decide are not known",
        known,
        "get the whole message (from `CUDA out of memory` to `unallocated`), or record the run: hotbed record script.py",
        "possible",
    )


def _sums(facts: Situation) -> tuple[str, ...]:
    """The sentences with the numbers, as far as they are known."""
    return tuple(sum_ for sum_ in (_asked(facts), _holds(facts), _inside(facts), _together(facts)) if sum_)


def _asked(facts: Situation) -> str:
    parts = []
    if facts.free_bytes is not None:
        parts.append(f"{_size(facts.free_bytes)} were free on the device")
    if facts.is_capped and facts.limit_bytes is not None and facts.reserved_bytes is not None:
        left = max(facts.limit_bytes - facts.reserved_bytes, 0)
        parts.append(f"the cap of {_size(facts.limit_bytes)} left {_size(left)}")
    if facts.cached_bytes is not None:
        hole = facts.largest_hole_bytes
        largest = "" if hole is None else f" (largest usable piece {_size(hole)})"
        parts.append(f"{_size(facts.cached_bytes)} were reserved but free{largest}")
    wanted = "" if facts.requested_bytes is None else f"wanted {_size(facts.requested_bytes)}"
    return "; ".join([wanted, *parts] if wanted else parts)


def _holds(facts: Situation) -> str:
    named = [
        (facts.allocated_bytes, "allocated"),
        (facts.cached_bytes, "reserved but free"),
        (facts.outside_bytes, "of this process outside of the allocator (CUDA context, libraries, NCCL)"),
        (facts.others_bytes, "other processes"),
        (
            None if facts.others_bytes is not None else facts.elsewhere_bytes,
            "elsewhere (other processes, libraries)",
        ),
    ]
    parts = [f"{_size(size)} {what}" for size, what in named if size]
    of = "" if facts.total_bytes is None else f"of {_size(facts.total_bytes)} in all: "
    return of + " + ".join(parts) if parts else ""


def _inside(facts: Situation) -> str:
    named = [
        (facts.pending_bytes, "waits for other streams"),
        (facts.private_free_bytes, "is free in private pools"),
        (facts.stream_free_bytes, "is cached for other streams"),
    ]
    parts = [f"{_size(size)} {what}" for size, what in named if size]
    return "of what is reserved but not allocated " + ", ".join(parts) if parts else ""


def _together(facts: Situation) -> str:
    if None in (facts.allocated_bytes, facts.requested_bytes, facts.reserved_bytes, facts.room_bytes):
        return ""
    needed = (facts.allocated_bytes or 0) + (facts.requested_bytes or 0)
    reach = (facts.reserved_bytes or 0) + (facts.room_bytes or 0)
    words = f"allocated and wanted make {_size(needed)}, within reach (reserved and room) are {_size(reach)}"
    return (
        f"{words}: {_size(needed - reach)} too much" if needed > reach else f"{words}: enough, in one piece"
    )


def _size(size_bytes: int | None) -> str:
    return "an unknown size" if size_bytes is None else format_size(size_bytes)
