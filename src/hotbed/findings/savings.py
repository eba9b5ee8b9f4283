"""What other allocator settings would save of a trace, by `hotbed tune`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hotbed.errors import HotbedError
from hotbed.tuning import tune
from hotbed.units import format_size

if TYPE_CHECKING:
    from hotbed.findings.finding import Finding
    from hotbed.trace import Trace


def with_savings(finding: Finding, trace: Trace) -> Finding:
    """`finding` on fragmentation with what tuning found in its evidence and its fix; takes seconds to minutes."""
    try:
        found = tune([trace])
    except HotbedError as error:
        return replace(finding, evidence=(*finding.evidence, f"tuning was not possible: {error.message}"))
    best, default, cap = found.without_cap, found.default, found.recommended
    words = (
        f"by replay with torch {found.torch_version}: {best.label} reserves {format_size(best.peak_reserved_bytes)}, default "
        f"settings {format_size(default.peak_reserved_bytes)}, the lower bound is {format_size(found.lower_bound_bytes)}"
    )
    capped = ""
    if cap.cap_bytes is not None:
        capped = f"; with a cap of {format_size(cap.cap_bytes)} and {cap.label} it still runs"
    fix = (
        None
        if best.peak_reserved_bytes >= default.peak_reserved_bytes
        else f"PYTORCH_CUDA_ALLOC_CONF={best.settings}"
    )
    return replace(finding, evidence=(*finding.evidence, words + capped), fix=fix or finding.fix)
