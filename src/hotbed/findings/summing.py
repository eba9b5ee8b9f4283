"""The memory at the end of a trace in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.findings.case import Case
from hotbed.trace.condition import Condition, Summary, summarize
from hotbed.trace.model import DEFAULT_POOL, Action

if TYPE_CHECKING:
    from hotbed.trace import Segment, Trace


def summary_of(trace: Trace) -> Summary:
    """As hotbed.summary() would have said it when the recording ended. What the recording does not tell is left out."""
    case = Case(trace)
    last = case.recorded.failures[-1] if case.recorded.failures else None
    reserved = sum(segment.size_bytes for segment in trace.segments)
    context = case.recorded.context_bytes
    events = len(trace.events)
    retries = [step.retries for step in case.steps if step.retries is not None]
    whole = [segment for segment in trace.segments if _is_whole(segment)]
    default = [segment for segment in trace.segments if segment.pool == DEFAULT_POOL]
    return summarize(
        Condition(
            device=trace.device,
            name=trace.device_info.name,
            allocated_bytes=sum(_of(segment, "active_allocated") for segment in trace.segments),
            reserved_bytes=reserved,
            whole_bytes=sum(segment.size_bytes for segment in whole if segment.pool == DEFAULT_POOL),
            pieces_bytes=sum(_of(segment, "inactive") for segment in default if not _is_whole(segment)),
            private_bytes=sum(
                _of(segment, "inactive") for segment in trace.segments if segment.pool != DEFAULT_POOL
            ),
            pending_bytes=sum(_of(segment, "active_pending_free") for segment in trace.segments),
            peak_allocated_bytes=case.allocated_at(case.peak) if events else None,
            peak_reserved_bytes=case.reserved_at(case.reserved_peak) if events else None,
            total_bytes=trace.device_info.total_bytes,
            process_bytes=None if context is None else reserved + context,
            others_bytes=None if last is None else last.others_bytes,
            limit_bytes=None if last is None else last.limit_bytes,
            retries=sum(retries) if retries else None,
            ooms=int((trace.events.action == Action.OOM).sum()),
            expandable=any(segment.is_expandable for segment in trace.segments),
        )
    )


def _is_whole(segment: Segment) -> bool:
    return all(block.state == "inactive" for block in segment.blocks)


def _of(segment: Segment, state: str) -> int:
    return sum(block.size_bytes for block in segment.blocks if block.state == state)
