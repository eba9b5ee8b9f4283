"""rank/*: what differs between the ranks of one run."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from hotbed.findings.finding import Finding
from hotbed.findings.wording import counted, line_words, listed
from hotbed.trace.model import Frame
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hotbed.findings.case import Case

_SHARE: Final = 0.10
_LEAST: Final = 64 * MIB
"""Ranks whose peaks differ by less are equal: batches of different length make as much."""
_LINES: Final = 4


def find_across(cases: Sequence[Case]) -> Iterator[Finding]:
    """What stands out between `cases`, one for each rank; nothing for those of one file, the devices of one process."""
    if len({case.trace.source for case in cases}) < 2:
        return
    peaks = [case.allocated_at(case.peak) for case in cases]
    top, low = cases[peaks.index(max(peaks))], cases[peaks.index(min(peaks))]
    if max(peaks) - min(peaks) >= max(_SHARE * max(peaks), _LEAST):
        yield _asymmetry(cases, peaks, top, low)
    yield from _calls(cases)


def _asymmetry(cases: Sequence[Case], peaks: list[int], top: Case, low: Case) -> Finding:
    by_line, by_category = _more(_by_line(top), _by_line(low)), _more(_by_category(top), _by_category(low))
    lines = [line for line, _ in by_line if isinstance(line, Frame)]
    evidence = [
        f"peaks: {listed([f'{_name(case)} {format_size(peak)}' for case, peak in zip(cases, peaks, strict=True)])}"
    ]
    if by_category:
        evidence.append(f"by what it is for: {_rises(by_category)}")
    if lines:
        evidence.append(f"by line: {_rises(by_line)}")
    return Finding(
        code="rank/asymmetry",
        severity="problem" if max(peaks) - median(peaks) >= max(_SHARE * max(peaks), _LEAST) else "notice",
        title=f"{_name(top)} peaks {format_size(max(peaks) - min(peaks))} above {_name(low)}",
        evidence=tuple(evidence),
        fix="the fullest rank decides the batch: spread what only it holds, or give it less work",
        bytes=max(peaks) - min(peaks),
        where=lines[0] if lines else None,
        others=tuple(lines[1:_LINES]),
        device=top.trace.device,
        rank=top.trace.rank,
    )


def _calls(cases: Sequence[Case]) -> Iterator[Finding]:
    """Caches that only some ranks empty: the others wait for these at the next collective."""
    counts = [len(case.empty_cache_events) for case in cases]
    if min(counts) > 0 or max(counts) < 3:
        return
    busy = cases[counts.index(max(counts))]
    sites = [
        call.where for call in busy.recorded.calls if call.kind == "empty_cache" and call.where is not None
    ]
    yield Finding(
        code="rank/calls",
        severity="notice",
        title="empty_cache() is called on some ranks only: the others wait for them",
        evidence=(
            listed(
                [
                    f"{_name(case)}: {counted(count, 'call')}"
                    for case, count in zip(cases, counts, strict=True)
                ]
            ),
        ),
        fix="call it on all ranks or, better, on none",
        where=sites[0] if sites else None,
        device=busy.trace.device,
        rank=busy.trace.rank,
    )


def _by_line(case: Case) -> dict[Frame | str | None, int]:
    return {share.of: share.bytes for share in case.by_line(case.allocations.live_at(case.peak))}


def _by_category(case: Case) -> dict[Frame | str | None, int]:
    return {share.of: share.bytes for share in case.by_category(case.allocations.live_at(case.peak))}


def _more(
    top: Mapping[Frame | str | None, int], low: Mapping[Frame | str | None, int]
) -> list[tuple[Frame | str | None, int]]:
    """What `top` has more than `low`, most first."""
    rises = [(name, size - low.get(name, 0)) for name, size in top.items()]
    return sorted((rise for rise in rises if rise[1] > 0), key=lambda rise: -rise[1])


def _rises(more: list[tuple[Frame | str | None, int]]) -> str:
    return listed([f"{_words(name)} {format_size(size)} more" for name, size in more[:_LINES]])


def _words(name: Frame | str | None) -> str:
    return line_words(name.filename, name.line) if isinstance(name, Frame) else name or "no line known"


def _name(case: Case) -> str:
    rank = "" if case.trace.rank is None else f"rank {case.trace.rank} "
    return f"{rank}({case.trace.source.rpartition('/')[2]})" if rank else case.trace.source.rpartition("/")[2]
