"""memory/*: memory that was looked at and does not leak, said plainly, and growth that cannot be told yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotbed.findings.finding import Finding
from hotbed.findings.growth import FEWEST_ENDS, tau
from hotbed.findings.leak_text import FIXES, needed_steps
from hotbed.findings.leaks import growing
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.findings.growth import Growth

_NOTABLE: Final = 0.05
"""share of the level below which a difference is none"""
_LEAST: Final = 16 * MIB
_EVAL_PEAK: Final = 1.1
"""times the training peak from which on an evaluation's is worth a word"""


def find(case: Case) -> Iterator[Finding]:
    """One finding about the ends of steps, and one about evaluations that peak."""
    growth = case.growth
    if growth is None:
        return
    settled = growth.live[growth.settled :]
    yield from _evaluations(case)
    if len(settled) < FEWEST_ENDS:
        yield from _too_few(case, growth, settled)
        return
    found = list(growing(case))
    yield from (finding for finding in found if not finding.code.startswith("leak/"))
    if not found:
        yield _in_order(case, growth, settled)


def _too_few(case: Case, growth: Growth, settled: npt.NDArray[np.int64]) -> Iterator[Finding]:
    if len(settled) >= 3 and tau(settled) == 1 and settled[-1] - settled[0] >= 1 * MIB:
        per_step = growth.per_step_bytes
        yield Finding(
            code="memory/still-growing",
            severity="notice",
            title=f"{format_size(per_step)} more each step so far, too few steps to tell whether it ends",
            evidence=(
                f"allocated at the ends of {len(settled)} steps behind the warm-up: {_levels(settled)}",
                f"{needed_steps(growth)} more steps tell whether this is a leak or a warm-up",
            ),
            fix=FIXES["memory/still-growing"],
            bytes=int(settled[-1] - settled[0]),
            per_step_bytes=round(per_step),
        )
    elif len(settled) >= 2:
        yield _in_order(case, growth, settled)


def _levels(levels: npt.NDArray[np.int64]) -> str:
    return ", ".join(format_size(int(level)) for level in levels)


def _in_order(case: Case, growth: Growth, settled: npt.NDArray[np.int64]) -> Finding:
    low, high = int(settled.min()), int(settled.max())
    notable = max(_LEAST, _NOTABLE * high)
    steps = f"{growth.settled_steps + 1} step ends behind the warm-up"
    if high - low >= notable:
        code, what = "memory/varying", "memory rises and falls with the steps and does not grow"
        words = f"allocated at {steps}: between {format_size(low)} and {format_size(high)}, no line holds more from step to step"
    elif low - int(growth.live[0]) >= notable:
        code, what = "memory/warm-up", "memory grew in the warm-up and has not since"
        words = f"allocated at the end of step {growth.numbers[0]}: {format_size(int(growth.live[0]))}; at {steps}: {format_size(high)}"
    else:
        code, what = "memory/flat", "allocated memory is flat: nothing leaks"
        words = f"allocated at {steps}: {format_size(low)} to {format_size(high)}"
    return Finding(
        code=code,
        severity="fine",
        title=what,
        evidence=(words, *_reserved(case, growth)),
        bytes=high,
        events=(int(growth.ends[growth.settled]), int(growth.ends[-1])),
    )


def _reserved(case: Case, growth: Growth) -> Iterator[str]:
    first, last = (case.reserved_at(int(growth.ends[at])) for at in (growth.settled, -1))
    course = "flat" if first == last else f"from {format_size(first)}"
    yield (
        f"reserved at the last one: {format_size(last)}, {course}; nvidia-smi shows this and the CUDA context, since torch keeps "
        "freed memory for the next request"
    )


def _evaluations(case: Case) -> Iterator[Finding]:
    evaluations = [step for step in case.steps if step.phase == "eval" and step.peak_allocated_bytes]
    train = [step.peak_allocated_bytes or 0 for step in case.settled_steps]
    if not evaluations or not train:
        return
    peaks = [step.peak_allocated_bytes or 0 for step in evaluations]
    if max(peaks) >= _EVAL_PEAK * max(train) and max(peaks) - max(train) >= _LEAST:
        yield Finding(
            code="memory/eval-peaks",
            severity="fine",
            title=f"evaluation peaks at {format_size(max(peaks))}, above training's {format_size(max(train))}",
            evidence=(
                f"{len(peaks)} evaluations, peaks from {format_size(min(peaks))} to {format_size(max(peaks))}; training peaks at "
                f"{format_size(max(train))} before and after: what an evaluation allocates is given back",
            ),
            bytes=max(peaks),
        )
