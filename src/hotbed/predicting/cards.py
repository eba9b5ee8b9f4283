"""Whether a program fits a card, and with how much room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hotbed.predicting.prediction import GpuFit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.gpu import Gpu
    from hotbed.predicting.capacity import Capacity, Need
    from hotbed.predicting.prediction import Overhead
    from hotbed.predicting.script_run import ScriptRun

_ARCHITECTURE = ("compute_capability", "sm_count")
"""figures of a Gpu by which kernels and libraries choose how much memory they work with"""


class Judge:
    """Fits of one run on any card, under the settings of the run and, where there are any, recommended ones."""

    def __init__(self, capacity: Capacity, run: ScriptRun, recommended: str | None) -> None:
        self.capacity, self.run = capacity, run
        self.need = capacity.need(run.settings)
        self.better = capacity.need(recommended) if recommended is not None else None

    def fit(self, gpu: Gpu, overhead: Overhead) -> GpuFit:
        """The trace replayed with what `gpu` has beside `overhead`."""
        available = gpu.total_bytes - overhead.bytes
        outcome = self.capacity.within(self.need.settings, available)
        smallest = _smallest(self.need, outcome is not None, available) + overhead.bytes
        fits_better = headroom_better = None
        if self.better is not None:
            fits_better = self.capacity.within(self.better.settings, available) is not None
            headroom_better = available - _smallest(self.better, fits_better, available)
        return GpuFit(
            gpu=gpu.name,
            total_bytes=gpu.total_bytes,
            fits=outcome is not None,
            headroom_bytes=gpu.total_bytes - smallest,
            smallest_bytes=smallest,
            fits_with_recommended=fits_better,
            recommended_headroom_bytes=headroom_better,
            alloc_retries=outcome.alloc_retries if outcome else 0,
            estimated=_estimated(gpu, self.run.gpu, overhead),
        )


def fit_by_peak(gpu: Gpu, overhead: Overhead, peak_reserved_bytes: int) -> GpuFit:
    """For a run without a trace: the peak against the card's memory."""
    smallest = peak_reserved_bytes + overhead.bytes
    return GpuFit(
        gpu=gpu.name,
        total_bytes=gpu.total_bytes,
        fits=smallest <= gpu.total_bytes,
        headroom_bytes=gpu.total_bytes - smallest,
        smallest_bytes=smallest,
        fits_with_recommended=None,
        recommended_headroom_bytes=None,
        alloc_retries=0,
        estimated="by its peak, since there is no trace to replay; near its limit the program may do with less",
    )


def hardest(fits: Sequence[GpuFit]) -> GpuFit:
    """Of the fits of several devices on one card model, that which decides; each kind of settings by itself."""
    worst = min(fits, key=lambda fit: (fit.fits, fit.headroom_bytes))
    better = [fit for fit in fits if fit.recommended_headroom_bytes is not None]
    if not better:
        return worst
    return replace(
        worst,
        fits_with_recommended=all(fit.fits_with_recommended for fit in better),
        recommended_headroom_bytes=min(fit.recommended_headroom_bytes or 0 for fit in better),
    )


def _smallest(need: Need, fits: bool, available: int) -> int:
    """Reserved bytes that the trace needs at least. Where it fits by luck below what bisection found, that counts."""
    if need.smallest_bytes is None:
        return available + 1
    return min(need.smallest_bytes, available) if fits else max(need.smallest_bytes, available + 1)


def _estimated(gpu: Gpu, ran_on: Gpu, overhead: Overhead) -> str | None:
    """Why the answer for `gpu` is no exact one; None for the card that the program ran on, or one alike."""
    reasons = []
    if any(getattr(gpu, figure) != getattr(ran_on, figure) for figure in _ARCHITECTURE):
        reasons.append(f"it ran as on {ran_on.name}: libraries may choose other workspaces here")
    if overhead.estimated:
        reasons.append(f"context and libraries as measured on {overhead.measured_on}")
    return "; ".join(reasons) or None
