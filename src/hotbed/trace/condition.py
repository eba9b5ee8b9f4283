"""What an allocator's figures mean at one moment, in words, and whether to act. Standard library only, as verdict.py."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA: Final = 1
_PIECES: Final = 0.10
"""share of reserved memory that is free in pieces: from here on hotbed.findings calls it a problem"""
_LEAST_PIECES: Final = 256 * MIB
_NEAR: Final = 0.10
"""Below this share of what can be had, memory is near its limit."""
_CROWD: Final = 0.05
"""share of the device from which on other processes matter; a desktop takes less"""


@dataclass(frozen=True)
class Condition:
    """Figures of one device as this process sees it. Bytes; None is unknown.

    `whole_bytes` is free in segments that hold nothing else, `pieces_bytes` between live blocks, `private_bytes` in private
    pools (CUDA graphs, MemPool), `pending_bytes` waits for other streams; with `allocated_bytes` they make
    `reserved_bytes`.
    """

    device: int
    name: str | None
    allocated_bytes: int
    reserved_bytes: int
    whole_bytes: int
    pieces_bytes: int
    private_bytes: int
    pending_bytes: int
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    process_bytes: int | None = None
    others_bytes: int | None = None
    limit_bytes: int | None = None
    retries: int | None = None
    ooms: int | None = None
    expandable: bool = False

    @property
    def room_bytes(self) -> int | None:
        """What the driver, and a cap, would still give; where no free memory is known, what no known process holds."""
        rooms = []
        if self.free_bytes is not None:
            rooms.append(self.free_bytes)
        elif self.total_bytes is not None:
            held = max(self.process_bytes or 0, self.reserved_bytes) + (self.others_bytes or 0)
            rooms.append(max(self.total_bytes - held, 0))
        if self.limit_bytes is not None:
            rooms.append(max(self.limit_bytes - self.reserved_bytes, 0))
        return min(rooms, default=None)


@dataclass(frozen=True)
class Advice:
    """What to do, and why; `act` is False where there is nothing to do."""

    act: bool
    text: str


@dataclass(frozen=True)
class Summary:
    """A condition in words: str() for terminals; notebooks show it as a table."""

    condition: Condition
    lines: tuple[tuple[str, int | None, str], ...]
    """(name, bytes, what it means here)"""
    advice: tuple[Advice, ...]

    def __str__(self) -> str:
        width = max(len(name) for name, _, _ in self.lines)
        rows = [f"{name:{width}}  {_size(size):>9}  {words}" for name, size, words in self.lines]
        todo = [("act: " if one.act else "no need to act: ") + one.text for one in self.advice]
        return "\n".join([self._head(), *rows, *todo])

    __repr__ = __str__

    def _head(self) -> str:
        name = self.condition.name
        return f"device {self.condition.device}" + ("" if name is None else f", {name}")

    def _repr_html_(self) -> str:
        """For Jupyter."""
        from html import escape

        cells = "".join(
            f"<tr><td>{escape(name)}</td><td style='text-align:right'>{_size(size)}</td>"
            f"<td style='text-align:left'>{escape(words)}</td></tr>"
            for name, size, words in self.lines
        )
        todo = "".join(
            f"<p><b>{'act' if one.act else 'no need to act'}:</b> {escape(one.text)}</p>"
            for one in self.advice
        )
        return f"<p>{escape(self._head())}</p><table>{cells}</table>{todo}"

    def to_json(self) -> dict[str, Any]:
        """Plain containers, schema 1."""
        return {
            "schema": SCHEMA,
            "condition": asdict(self.condition),
            "lines": [{"name": name, "bytes": size, "meaning": words} for name, size, words in self.lines],
            "advice": [asdict(one) for one in self.advice],
        }


def _size(size: int | None) -> str:
    return "" if size is None else format_size(size)


def summarize(condition: Condition) -> Summary:
    """`condition` in words."""
    return Summary(condition, tuple(_lines(condition)), tuple(_advice(condition)))


def _lines(now: Condition) -> Iterable[tuple[str, int | None, str]]:
    peak = "" if now.peak_allocated_bytes is None else f"; at most {format_size(now.peak_allocated_bytes)}"
    yield "allocated", now.allocated_bytes, f"in tensors that are alive{peak}"
    peak = "" if now.peak_reserved_bytes is None else f"; at most {format_size(now.peak_reserved_bytes)}"
    yield "reserved", now.reserved_bytes, f"taken from the driver, of no use to other processes{peak}"
    for name, size, words in (
        (
            "  whole",
            now.whole_bytes,
            "cached in whole segments: empty_cache() would give these back, and only these",
        ),
        (
            "  pieces",
            now.pieces_bytes,
            "free between live blocks: serves smaller requests, nothing gives it back",
        ),
        ("  private", now.private_bytes, "free in private pools: for CUDA graphs or a MemPool only"),
        ("  pending", now.pending_bytes, "freed, but another stream may still use it"),
    ):
        if size:
            yield name, size, words
    if now.process_bytes is not None:
        outside = max(now.process_bytes - now.reserved_bytes, 0)
        yield (
            "outside",
            outside,
            "of this process beside the allocator: CUDA context, kernels, libraries, NCCL",
        )
    if now.others_bytes:
        yield "others", now.others_bytes, "of other processes on the device (nvidia-smi names them)"
    if now.free_bytes is not None:
        yield "free", now.free_bytes, f"of {_size(now.total_bytes)}, for whoever asks first"
    if now.limit_bytes is not None:
        yield (
            "cap",
            now.limit_bytes,
            "the most that this process may reserve (set_per_process_memory_fraction)",
        )


def _advice(now: Condition) -> Iterable[Advice]:
    found = [*_trouble(now), *_waste(now), *_neighbours(now)]
    if not found:
        cached = now.reserved_bytes - now.allocated_bytes
        text = (
            f"the {format_size(cached)} reserved beyond what is allocated serve the next requests; emptying the cache would only "
            "make them slower"
            if cached
            else "nothing is cached"
        )
        found = [Advice(False, text)]
    return found


def _trouble(now: Condition) -> Iterable[Advice]:
    if now.ooms:
        yield Advice(
            True,
            f"{now.ooms} requests ran out of memory: hotbed.guard() says why the next one does, hotbed findings why it did",
        )
    elif now.retries:
        yield Advice(
            True,
            f"memory was at its limit {now.retries} times, and the whole cache was given back to serve a request, which "
            "makes steps slow: lower the peak, or let hotbed tune look for settings; more calls of empty_cache() do not help",
        )
    room, reach = now.room_bytes, None if now.room_bytes is None else now.room_bytes + now.reserved_bytes
    if room is not None and reach and room < _NEAR * reach and not now.ooms:
        usable = now.whole_bytes + now.pieces_bytes
        yield Advice(
            room + usable < _NEAR * reach,
            f"{format_size(room)} can still be taken, and {format_size(usable)} of what is reserved are free"
            + (": the next larger step may not fit" if room + usable < _NEAR * reach else ""),
        )


def _waste(now: Condition) -> Iterable[Advice]:
    if now.pieces_bytes <= max(_PIECES * now.reserved_bytes, _LEAST_PIECES):
        return
    what = f"{format_size(now.pieces_bytes)} ({100 * now.pieces_bytes / now.reserved_bytes:.0f} % of reserved) are free in pieces"
    room = now.room_bytes
    tight = room is None or room < now.pieces_bytes
    do = (
        "allocate what stays before what goes"
        if now.expandable
        else "expandable_segments:True keeps free memory in one piece; hotbed tune tries it on a recording"
    )
    yield Advice(
        tight, f"{what}: {do}" if tight else f"{what}, but {format_size(room or 0)} are free beside it"
    )


def _neighbours(now: Condition) -> Iterable[Advice]:
    if not now.total_bytes or (now.others_bytes or 0) < _CROWD * now.total_bytes or now.free_bytes is None:
        return
    if now.free_bytes < _NEAR * now.total_bytes and now.whole_bytes > _NEAR * now.total_bytes:
        yield Advice(
            True,
            f"other processes are short of memory and {format_size(now.whole_bytes)} are cached here: call empty_cache() before "
            "a pause",
        )
