"""fragmentation/*: how far reserved memory is above what was ever live, and what the difference consists of."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings.finding import Finding
from hotbed.findings.holes import Standing, before_growth, pins
from hotbed.findings.wording import counted, event_words, line_words
from hotbed.replaying.detail import HOLE, OTHER_STREAM, PRIVATE_POOL, SPLIT_LIMIT, WHOLE_SEGMENT
from hotbed.trace.model import Frame
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.findings.case import Case
    from hotbed.findings.finding import Severity
    from hotbed.findings.holes import Pin

# Of twelve jobs recorded on an H200 those of fixed sizes reserve 4 to 17 % more than is ever live, which no setting
# changes much; those whose sizes vary 32 to 74 %. Below 64 MiB the rounding to segments of 20 MiB is the cause.
_NOTABLE: Final = (0.10, 64 * MIB)
_SEVERE: Final = (0.25, 256 * MIB)
_PINNED: Final = 0.25
"""share of the free memory that must lie between live blocks for them to be named"""
_LINES: Final = 5
_SHOWN_AS_SHARE: Final = 20 * MIB
_CODES: Final = {
    HOLE: "fragmentation/pinned",
    WHOLE_SEGMENT: "fragmentation/sizes",
    OTHER_STREAM: "fragmentation/stream",
    PRIVATE_POOL: "fragmentation/pool",
    SPLIT_LIMIT: "fragmentation/split-limit",
}


def find(case: Case) -> Iterator[Finding]:
    """One finding for a trace in which reserved memory grew."""
    reserved = case.reserved_at(case.reserved_peak)
    live = case.allocated_at(case.peak)
    stands = before_growth(case)
    if stands is None or not live:
        return
    excess = reserved - live
    severity = _severity(excess, reserved)
    if severity == "fine":
        yield _in_order(case, reserved, excess)
        return
    code = _CODES.get(stands.kinds[0].reason if stands.kinds else "", "fragmentation/sizes")
    blamed = pins(case, stands) if stands.bytes_of(HOLE) >= _PINNED * stands.free_bytes else []
    lines = [pin.where for pin in blamed if pin.where is not None]
    asking = case.line_of(int(case.trace.events.stack[stands.request]))
    if code == "fragmentation/stream":
        lines = [*_cachers(case, stands), *([asking] if asking is not None else [])]
    elif asking is not None and code != "fragmentation/pinned":
        lines = [asking, *(line for line in lines if line != asking)]
    yield Finding(
        code=code,
        severity=severity,
        title=f"{format_size(excess)} of {format_size(reserved)} reserved were never needed at once",
        evidence=(
            _bound(case, reserved, live),
            _levels(case, stands),
            *_kinds(stands),
            *_pins(blamed),
        ),
        fix=_fix(case, code, lines),
        bytes=excess,
        where=lines[0] if lines else asking,
        others=tuple(lines[1:_LINES]),
        events=(stands.place, stands.request + 1),
    )


def _cachers(case: Case, stands: Standing) -> list[Frame]:
    """The lines that used the stream for which most is cached that the request could not have."""
    idle: Counter[int] = Counter()
    layout = stands.layout
    for size, number in zip(layout.hole_bytes.tolist(), layout.hole_segment.tolist(), strict=True):
        segment = layout.segments[number]
        if segment.pool == stands.pool and segment.stream != stands.stream:
            idle[segment.stream] += size
    stream = idle.most_common(1)[0][0]
    made = case.allocations
    shares = case.by_line((made.stream == np.uint64(stream)) & (made.made < stands.place))
    return [share.of for share in shares if isinstance(share.of, Frame)]


def _severity(excess: int, reserved: int) -> Severity:
    for severity, (share, least) in (("problem", _SEVERE), ("notice", _NOTABLE)):
        if excess >= max(share * reserved, least):
            return severity  # type: ignore[return-value]
    return "fine"


def _in_order(case: Case, reserved: int, excess: int) -> Finding:
    return Finding(
        code="fragmentation/none",
        severity="fine",
        title=f"little is lost to fragmentation: {format_size(excess)} of {format_size(reserved)} reserved",
        evidence=(_bound(case, reserved, reserved - excess),),
        bytes=excess,
    )


def _bound(case: Case, reserved: int, live: int) -> str:
    # Shares of next to nothing are absurd: a segment alone is 2 MiB.
    more = f"{100 * (reserved / live - 1):.0f} %" if live >= _SHOWN_AS_SHARE else format_size(reserved - live)
    return (
        f"the most that was live at once is {format_size(live)} ({event_words(case, case.peak - 1)}), which no allocator "
        f"can undercut; reserved went up to {format_size(reserved)}, {more} above"
    )


def _levels(case: Case, stands: Standing) -> str:
    return (
        f"{event_words(case, stands.request)}: {format_size(stands.request_bytes)} were requested while "
        f"{format_size(stands.free_bytes)} were reserved but free, none of it of use: reserved grew to "
        f"{format_size(case.reserved_at(stands.request))}"
    )


def _kinds(stands: Standing) -> Iterator[str]:
    for kind in stands.kinds:
        yield (
            f"{format_size(kind.bytes)} in {counted(kind.pieces, 'piece')}, the largest "
            f"{format_size(kind.largest_bytes)}: {kind.reason}"
        )


def _pins(blamed: list[Pin]) -> Iterator[str]:
    for pin in blamed[:_LINES]:
        by = line_words(pin.where.filename, pin.where.line) if pin.where else "a line that was not recorded"
        yield (
            f"{counted(pin.blocks, 'block')} of {by} ({format_size(pin.block_bytes)} in all) "
            f"{'pins' if pin.blocks == 1 else 'pin'} {format_size(pin.free_bytes)} free around "
            f"{'it' if pin.blocks == 1 else 'them'}, the largest hole {format_size(pin.largest_hole_bytes)}"
        )


def _fix(case: Case, code: str, lines: list[Frame]) -> str:
    ask = f"what each setting would do to this run: hotbed tune {case.trace.source}"
    settings = case.settings
    if code == "fragmentation/stream":
        return f"make these tensors on the stream that uses them, or make the side stream once and keep using it; {ask}"
    if code == "fragmentation/pool":
        return "capture graphs of one shape family into one pool (torch.cuda.graph(pool=...)), largest first"
    if code == "fragmentation/split-limit":
        return f"raise or drop max_split_size_mb:{settings.max_split_size_mb}; {ask}"
    early = (
        f"allocate what {line_words(lines[0].filename, lines[0].line)} keeps before the large temporary blocks, or copy "
        "it out of their way once they are gone; "
        if code == "fragmentation/pinned" and lines
        else ""
    )
    if settings.expandable_segments or settings.backend != "native":
        return f"{early}expandable segments are on already; {ask}"
    if settings.max_split_size_mb is not None:
        return f"{early}try expandable_segments:True instead of max_split_size_mb (not both); {ask}"
    return f"{early}try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; {ask}"
