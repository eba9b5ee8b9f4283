"""peak/composition: who holds the memory when most of it is allocated, by category and by allocating line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotbed.findings.finding import Finding
from hotbed.findings.wording import counted, event_words, listed
from hotbed.trace.model import Frame
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.findings.case import Case, Share

_LINES: Final = 5
_DOMINATES: Final = 0.5
"""share of the peak from which on one category is what to work on"""
_ADVICE: Final = {
    "activations": "keep fewer activations: a smaller batch, torch.utils.checkpoint, or autocast to bfloat16",
    "optimizer state": "shrink the optimizer's state: 8-bit or factored states, or shards over ranks (FSDP, ZeRO-1)",
    "parameters": "store the parameters in fewer bits, or shard them over ranks (FSDP)",
    "gradients": "free gradients early (zero_grad(set_to_none=True) before the forward), or shard them (FSDP, ZeRO-2)",
    "inputs": "move inputs to the device later or in smaller pieces, and drop them after the forward",
    "library workspaces": "limit workspaces: CUBLAS_WORKSPACE_CONFIG, torch.backends.cudnn.benchmark = False",
}


def find(case: Case) -> Iterator[Finding]:
    """One finding for a trace that allocates anything."""
    place = case.peak
    live = case.allocations.live_at(place)
    if not live.any():
        return
    lines = case.by_line(live)
    frames = [share.of for share in lines if isinstance(share.of, Frame)]
    categories = case.by_category(live)
    total = case.allocated_at(place)
    evidence = [_levels(case)]
    if categories:
        evidence.append(f"by what it is for: {listed(_parts(categories, total))}")
    if frames:
        evidence.append(f"by allocating line: {listed(_parts(lines, total))}")
    yield Finding(
        code="peak/composition",
        severity="notice",
        title=f"the peak is {format_size(total)}{_mostly(categories or lines, total)}",
        evidence=tuple(evidence),
        fix=_advice(categories, total),
        bytes=total,
        where=frames[0] if frames else None,
        others=tuple(frames[1:_LINES]),
        events=(max(place - 1, 0), place),
    )


def _levels(case: Case) -> str:
    """The three levels that are easily taken for each other: allocated, reserved, and used on the device."""
    place = case.peak
    words = (
        f"{event_words(case, place - 1)}: {format_size(case.allocated_at(place))} allocated; "
        f"reserved at its own peak {format_size(case.reserved_at(case.reserved_peak))}"
    )
    process = [sample.process_bytes for sample in case.trace.nvml if sample.process_bytes is not None]
    if process:
        return f"{words}; the process used up to {format_size(max(process))} of the device (NVML)"
    if case.recorded.context_bytes is not None:
        context = case.recorded.context_bytes
        return f"{words}; {format_size(context)} of the device lie outside of the allocator (CUDA context, libraries)"
    return words


def _parts(shares: list[Share], total: int) -> list[str]:
    return [
        f"{_name(share)} {format_size(share.bytes)} ({100 * share.bytes / total:.0f} %, {counted(share.allocations, 'block')})"
        for share in shares[:_LINES]
    ]


def _name(share: Share) -> str:
    if isinstance(share.of, Frame):
        return f"{share.of.filename.rpartition('/')[2]}:{share.of.line}"
    return share.of or "no line known"


def _mostly(shares: list[Share], total: int) -> str:
    first = shares[0]
    return f", {100 * first.bytes / total:.0f} % of it {_name(first)}" if first.of is not None else ""


def _advice(categories: list[Share], total: int) -> str | None:
    """What to do about the category that holds most of the peak, where one does."""
    first = categories[0] if categories else None
    if first is None or first.bytes < _DOMINATES * total:
        return None
    return _ADVICE.get(str(first.of))
