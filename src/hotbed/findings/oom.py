"""oom/*: why each out-of-memory of a trace happened, from the memory map at that moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.findings.finding import Finding
from hotbed.findings.holes import pins, standing
from hotbed.findings.oom_text import read_message, situation
from hotbed.findings.wording import counted, event_words, line_words, listed
from hotbed.replaying.detail import SPLIT_LIMIT
from hotbed.trace.model import DEFAULT_POOL, NONE, Action, Frame
from hotbed.trace.verdict import Situation, bytes_at_fault, from_driver, judge
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotbed.findings.case import Case, Share
    from hotbed.findings.holes import Standing
    from hotbed.trace import Segment
    from hotbed.trace.model import Block
    from hotbed.trace.recorded import Failure
    from hotbed.trace.verdict import Verdict

    Segments = Sequence[Segment]

_LOOKED_AT: Final = 4
"""A program that catches the error may run into it thousands of times: the last ones tell."""
_LINES: Final = 3
_GIVEN_UP: Final = (Action.FREE_COMPLETED, Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
"""what torch does between a refused request and its error"""


def find(case: Case) -> Iterator[Finding]:
    """One finding for each cause and line, for the last few failures."""
    events = np.flatnonzero(case.trace.events.action == Action.OOM).tolist()
    found: dict[tuple[str, Frame | None], Finding] = {}
    for event in [event for event in events if not _tried_again(case, event)][-_LOOKED_AT:]:
        finding = _at(case, event, _failure_at(case, event))
        found[finding.code, finding.where] = finding
    if not events:
        for failure in case.recorded.failures[-_LOOKED_AT:]:
            finding = _untraced(failure)
            found[finding.code, finding.where] = finding
    more = max(len(events), len(case.recorded.failures))
    for finding in found.values():
        counts = (f"the trace has {counted(more, 'failure')} in all",) if more > 1 else ()
        yield replace(finding, evidence=(*finding.evidence, *counts))


def _tried_again(case: Case, event: int) -> bool:
    """Whether the same call asked again right after, and failed or did with less: a library that looks for a plan that fits."""
    events = case.trace.events
    later = np.flatnonzero(np.isin(events.action[event + 1 :], (Action.ALLOC, Action.OOM)))
    if not len(later) or events.stack[event] == NONE:
        return False
    following = event + 1 + int(later[0])
    less = events.action[following] == Action.OOM or events.size[following] < events.size[event]
    return bool(events.stack[following] == events.stack[event] and less)


def _at(case: Case, event: int, failure: Failure | None) -> Finding:
    stands = standing(case, event, event)
    asked = _asked_at(case, stands)
    facts = _facts(case, stands, case.map_at(event, asked), failure)
    verdict = judge(facts)
    where = (failure.where if failure is not None else None) or case.line_of(
        int(case.trace.events.stack[event])
    )
    lines, words = _culprits(case, stands, asked, verdict)
    if verdict.code == "oom/private-pool" and (captures := _captures(case, event)):
        # The request may come from anywhere; what can be changed is how graphs are captured.
        where, lines = captures[0], [*captures[1:], *([where] if where else []), *lines]
    return Finding(
        code=verdict.code,
        severity="problem",
        title=verdict.title,
        evidence=(f"{event_words(case, event)}: {verdict.sums[0]}", *verdict.sums[1:], *words),
        fix=_fix(case, verdict),
        bytes=bytes_at_fault(facts, verdict),
        where=where,
        others=tuple(line for line in lines if line != where)[:_LINES],
        events=(event, event + 1),
    )


def _failure_at(case: Case, event: int) -> Failure | None:
    """What the recorder wrote down about the failure at `event`: it sees the error a little later than the allocator."""
    later = [
        failure for failure in case.recorded.failures if failure.event is not None and failure.event >= event
    ]
    return min(later, key=lambda failure: failure.event or 0, default=None)


def _untraced(failure: Failure) -> Finding:
    """A failure whose event lies in a gap, or in a trace without events: the recorder's figures alone."""
    said = situation(read_message(failure.message)) if failure.message else Situation()
    facts = _with_failure(said, failure)
    verdict = judge(facts)
    return Finding(
        code=verdict.code,
        severity="problem",
        title=verdict.title,
        evidence=verdict.sums,
        fix=verdict.fix,
        bytes=bytes_at_fault(facts, verdict),
        where=failure.where,
    )


def _asked_at(case: Case, stands: Standing) -> int:
    """The place at which the request was turned down. Before torch gives up it waits for other streams: what that frees
    comes between the request and the error, and is not tried again."""
    action, place = case.trace.events.action, stands.place
    while place > 0 and action[place - 1] in _GIVEN_UP:
        place -= 1
    waited = (action[place : stands.place] == Action.FREE_COMPLETED).any()
    would_do = stands.bytes_of(SPLIT_LIMIT) and case.settings.max_split_size_mb is None
    return place if waited and would_do else stands.place


def _captures(case: Case, event: int) -> list[Frame]:
    """The lines that captured CUDA graphs before `event`, most captures first."""
    lines = [
        call.where
        for call in case.recorded.calls
        if call.kind == "capture" and call.where is not None and (call.event is None or call.event <= event)
    ]
    return [line for line, _ in Counter(lines).most_common()]


def _with_failure(facts: Situation, failure: Failure) -> Situation:
    known: dict[str, Any] = {
        name: value
        for name, value in (
            ("requested_bytes", failure.requested_bytes),
            ("allocated_bytes", failure.allocated_bytes),
            ("reserved_bytes", failure.reserved_bytes),
            ("free_bytes", failure.free_bytes),
            ("total_bytes", failure.total_bytes),
            ("process_bytes", failure.process_bytes),
            ("others_bytes", failure.others_bytes),
            ("limit_bytes", failure.limit_bytes),
        )
        if value is not None
    }
    return replace(facts, **known)


def _facts(case: Case, stands: Standing, segments: Segments, failure: Failure | None) -> Situation:
    """The situation at an OOM event; what the allocator's map says wins over what the recorder saw a little later."""
    event, events = stands.request, case.trace.events
    facts = Situation(total_bytes=case.trace.device_info.total_bytes)
    if failure is not None:
        facts = _with_failure(facts, failure)
    process, others = _by_nvml(case, int(events.time_us[event]))
    blocks = [(segment, block) for segment in segments for block in segment.blocks]
    reserved = sum(segment.size_bytes for segment in segments)
    private = sum(s.size_bytes for s in segments if s.pool not in (DEFAULT_POOL, stands.pool))
    pool, stream = stands.pool, stands.stream
    facts = replace(
        facts,
        requested_bytes=stands.request_bytes,
        allocated_bytes=sum(block.size_bytes for _, block in blocks if block.state == "active_allocated"),
        reserved_bytes=reserved,
        free_bytes=int(events.address[event]),
        process_bytes=process if facts.process_bytes is None else facts.process_bytes,
        others_bytes=others if facts.others_bytes is None else facts.others_bytes,
        pending_bytes=sum(block.size_bytes for _, block in blocks if _is_pending(block)),
        private_reserved_bytes=private,
        private_free_bytes=sum(b.size_bytes for s, b in blocks if _is_free(b) and s.pool != pool),
        stream_free_bytes=sum(
            b.size_bytes for s, b in blocks if _is_free(b) and s.pool == pool and s.stream != stream
        ),
        largest_hole_bytes=max(
            (b.size_bytes for s, b in blocks if _is_free(b) and (s.pool, s.stream) == (pool, stream)),
            default=0,
        ),
    )
    facts = replace(facts, limit_bytes=_limit(case, facts))
    gap = from_driver(stands.request_bytes) - (facts.room_bytes or 0)
    return replace(
        facts,
        pending_suffices=bool(facts.pending_bytes) and _would_serve(stands, segments, gap),
        private_suffices=_private_serves(stands, segments, gap),
    )


def _is_free(block: Block) -> bool:
    return block.state == "inactive"


def _is_pending(block: Block) -> bool:
    return block.state == "active_pending_free"


def _would_serve(stands: Standing, segments: Segments, gap: int) -> bool:
    """Whether the request could have been served had all blocks that wait been free: from one run of them in its own
    pool and stream, or by giving whole segments back to the driver."""
    returned = 0
    for segment in segments:
        longest = run = 0
        for block in segment.blocks:
            run = run + block.size_bytes if _is_free(block) or _is_pending(block) else 0
            longest = max(longest, run)
        if (segment.pool, segment.stream) == (stands.pool, stands.stream) and longest >= stands.request_bytes:
            return True
        returned += segment.size_bytes if longest == segment.size_bytes and segment.pool == stands.pool else 0
    return returned >= gap


def _private_serves(stands: Standing, segments: Segments, gap: int) -> bool:
    """Whether what is free in other pools would have served the request there, or given back to the driver."""
    others = [segment for segment in segments if segment.pool != stands.pool]
    holes = [block.size_bytes for segment in others for block in segment.blocks if _is_free(block)]
    whole = sum(segment.size_bytes for segment in others if all(map(_is_free, segment.blocks)))
    return max(holes, default=0) >= stands.request_bytes or (whole > 0 and whole >= gap)


def _by_nvml(case: Case, time_us: int) -> tuple[int | None, int | None]:
    """Bytes of this process and of others by the last NVML sample before `time_us`."""
    before = [
        sample for sample in case.trace.nvml if sample.time_us <= time_us and sample.process_bytes is not None
    ]
    if not before or before[-1].process_bytes is None:
        return None, None
    last = before[-1]
    mine = before[-1].process_bytes
    return mine, max(last.used_bytes - mine, 0)


def _limit(case: Case, facts: Situation) -> int | None:
    """The cap in force: as recorded, by the settings, or, where the device had room, the least that explains the refusal."""
    if facts.limit_bytes is not None:
        return facts.limit_bytes
    fraction = case.settings.per_process_memory_fraction
    if fraction is not None and facts.total_bytes is not None:
        return int(fraction * facts.total_bytes)
    wanted, free = from_driver(facts.requested_bytes or 0), facts.free_bytes or 0
    return (facts.reserved_bytes or 0) + wanted - 1 if free >= wanted else None


def _culprits(case: Case, stands: Standing, asked: int, verdict: Verdict) -> tuple[list[Frame], list[str]]:
    """Lines that are behind the cause, most important first, and a sentence on them."""
    made, place = case.allocations, stands.place
    if verdict.code == "oom/fragmentation":
        blamed = pins(case, stands)[:_LINES]
        words = [
            f"{counted(pin.blocks, 'block')} of {_name(pin.where)} ({format_size(pin.block_bytes)}) in the way of "
            f"{format_size(pin.free_bytes)} free"
            for pin in blamed
        ]
        return [pin.where for pin in blamed if pin.where is not None], words
    if verdict.code == "oom/pending-free":
        chosen, what = made.active_at(asked) & ~made.live_at(asked), "waiting for other streams"
    elif verdict.code == "oom/private-pool":
        pools = case.trace.events.pool[made.made.clip(0)]
        private = np.array([pool != stands.pool for pool in case.trace.pools] + [False])
        chosen, what = (made.made >= 0) & (made.made < place) & private[pools], "made in private pools so far"
    else:
        chosen, what = made.live_at(place), "in use"
    shares = case.by_line(chosen)[:_LINES]
    lines = [share.of for share in shares if isinstance(share.of, Frame)]
    return lines, [f"{what}: {listed([_share(share) for share in shares])}"] if lines else []


def _share(share: Share) -> str:
    where = share.of if isinstance(share.of, Frame) else None
    return f"{format_size(share.bytes)} of {_name(where)} ({counted(share.allocations, 'block')})"


def _name(where: Frame | None) -> str:
    return line_words(where.filename, where.line) if where is not None else "a line that was not recorded"


def _fix(case: Case, verdict: Verdict) -> str:
    """The verdict's advice, less what is in force already."""
    if verdict.code == "oom/fragmentation" and case.settings.expandable_segments:
        return (
            "expandable segments are on already: allocate what stays before what goes, or free the blocks that are in the "
            f"way; hotbed tune {case.trace.source} tries other settings"
        )
    return verdict.fix.replace("`hotbed tune` for this job", f"hotbed tune {case.trace.source}")
