"""peak/*: which stretch of the program decides the peak: set-up, the first step, evaluation, or two places of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings.finding import Finding
from hotbed.findings.passes import keeps_for_nothing
from hotbed.findings.wording import line_words, listed, step_words
from hotbed.trace.model import Frame
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.trace.recorded import Step

_SHARE: Final = 0.10
_LEAST: Final = 32 * MIB
"""A peak decides if it is this much above that of the settled steps: less is within what batches differ by."""
_VALLEY: Final = 0.25
"""Two peaks of a step are two if memory falls between them by this share of the higher one's rise."""
_LINES: Final = 5


@dataclass(frozen=True)
class _Stretch:
    """A stretch of the program, its highest allocated level, and the place of it."""

    step: Step
    bytes: int
    place: int


def find(case: Case) -> Iterator[Finding]:
    """At most one finding on the stretch that decides, and one on steps with two peaks."""
    stretches = [stretch for stretch in (_stretch(case, step) for step in case.steps) if stretch is not None]
    among = set(case.settled_steps)
    settled = [stretch for stretch in stretches if stretch.step in among]
    if len(settled) < 2:
        return
    usual = sorted(settled, key=lambda stretch: stretch.bytes)[len(settled) // 2]
    steady = max(settled, key=lambda stretch: stretch.bytes)
    top = max(stretches, key=lambda stretch: stretch.bytes)
    decided = _decides(top, usual if top.step.phase == "train" else steady)
    if decided and top.step in case.settled_steps:
        yield from _outlier(case, top, usual)
    elif decided:
        yield _early_or_eval(case, top, steady)
    yield from _two_peaks(case, steady)


def _stretch(case: Case, step: Step) -> _Stretch | None:
    if step.first_event is None or step.end_event is None or step.end_event <= step.first_event:
        return None
    curve = case.curves.allocated[step.first_event : step.end_event]
    at = int(curve.argmax())
    return _Stretch(step, int(curve[at]), step.first_event + at + 1)


def _decides(top: _Stretch, usual: _Stretch) -> bool:
    return top.bytes - usual.bytes >= max(_SHARE * usual.bytes, _LEAST)


def _early_or_eval(case: Case, top: _Stretch, steady: _Stretch) -> Finding:
    phase = top.step.phase
    if phase == "eval":
        return _evaluation(case, top, steady)
    code = "peak/setup" if phase == "setup" else "peak/first-step"
    lines = _risen(case, top.place, steady.place)
    return Finding(
        code=code,
        severity="notice",
        title=f"{step_words(top.step)} decides the peak: {format_size(top.bytes)}, settled steps need {format_size(steady.bytes)}",
        evidence=tuple(_against(case, top, steady)),
        fix=_FIXES[code],
        bytes=top.bytes - steady.bytes,
        where=lines[0] if lines else None,
        others=tuple(lines[1:_LINES]),
        events=(top.step.first_event or 0, top.step.end_event or 0),
    )


_FIXES: Final = {
    "peak/setup": "load onto the CPU or with mmap and move once; free the copy before the next one is made",
    "peak/first-step": "what only the first steps need is trials and lazy state: torch.backends.cudnn.benchmark = False, or a "
    "short warm-up batch with torch.cuda.empty_cache() once after it",
    "peak/eval": "evaluate in smaller batches, and move outputs to the CPU as they come",
    "no_grad": "wrap the evaluation in torch.no_grad() (or inference_mode()): without it each forward keeps its activations",
}


def _evaluation(case: Case, top: _Stretch, usual: _Stretch) -> Finding:
    """The finding for an evaluation that decides the peak; a problem where it keeps activations that nobody will use."""
    wasted = keeps_for_nothing(case, top.step, top.place)
    lines = _risen(case, top.place, usual.place)
    evidence = _against(case, top, usual)
    if wasted is not None:
        evidence.append(
            f"{format_size(wasted.kept_bytes)} of {format_size(wasted.made_bytes)} that its forward made are still held at its "
            f"peak ({wasted.blocks} blocks), and no backward follows before they are freed: gradients were on"
        )
    return Finding(
        code="peak/eval",
        severity="notice" if wasted is None else "problem",
        title=f"{'evaluation' if wasted is None else 'evaluation with gradients on'} decides the peak: "
        f"{format_size(top.bytes)}, training needs {format_size(usual.bytes)}",
        evidence=tuple(evidence),
        fix=_FIXES["peak/eval" if wasted is None else "no_grad"],
        bytes=top.bytes - usual.bytes,
        where=lines[0] if lines else None,
        others=tuple(lines[1:_LINES]),
        events=(top.step.first_event or 0, top.step.end_event or 0),
    )


def _outlier(case: Case, top: _Stretch, usual: _Stretch) -> Iterator[Finding]:
    """A training step far above the others: told only where it holds a forward without gradients' use, an evaluation."""
    if keeps_for_nothing(case, top.step, top.place) is not None:
        yield _evaluation(case, top, usual)


def _against(case: Case, top: _Stretch, usual: _Stretch) -> list[str]:
    words = [
        f"peak of {step_words(top.step)}: {format_size(top.bytes)} allocated; of {step_words(usual.step)}: "
        f"{format_size(usual.bytes)}, {100 * (1 - usual.bytes / top.bytes):.0f} % less"
    ]
    rises = [(line, more) for line, more in _rises(case, top.place, usual.place) if isinstance(line, Frame)]
    if rises:
        named = [f"{line_words(line.filename, line.line)} {format_size(more)}" for line, more in rises[:3]]
        words.append(f"what it holds more, by line: {listed(named)}")
    return words


def _rises(case: Case, place: int, against: int) -> list[tuple[Frame | None, int]]:
    """How much more each line holds at `place` than at `against`, most first."""
    made, count = case.allocations, len(case.lines)
    held = [
        np.bincount(case.allocation_lines[live], weights=made.size[live], minlength=count)
        for live in (made.live_at(place), made.live_at(against))
    ]
    more = held[0] - held[1]
    return [(case.lines[line], int(more[line])) for line in np.argsort(-more).tolist() if more[line] > 0]


def _risen(case: Case, place: int, against: int) -> list[Frame]:
    return [line for line, _ in _rises(case, place, against) if line is not None]


def _two_peaks(case: Case, stretch: _Stretch) -> Iterator[Finding]:
    first, end = stretch.step.first_event or 0, stretch.step.end_event or 0
    curve = case.curves.allocated[first:end]
    top = stretch.place - first - 1
    second = _second_peak(curve, top)
    if second is None:
        return
    other = first + second + 1
    mine, theirs = _leading(case, stretch.place, first), _leading(case, other, first)
    if mine is None or theirs is None or mine == theirs:
        return
    height = int(curve[second])
    yield Finding(
        code="peak/two-peaks",
        severity="notice",
        title=f"each step peaks twice: {format_size(stretch.bytes)} and {format_size(height)}, at different lines",
        evidence=(
            f"the higher peak is led by {line_words(mine.filename, mine.line)}, the other by "
            f"{line_words(theirs.filename, theirs.line)}; in between memory falls to "
            f"{format_size(int(curve[min(top, second) : max(top, second)].min()))}",
            f"whatever is done about the first alone saves at most {format_size(stretch.bytes - height)}",
        ),
        fix="work on both, or on what is live at both (parameters, optimizer state)",
        bytes=stretch.bytes - height,
        where=mine,
        others=(theirs,),
        events=(first, end),
    )


def _second_peak(curve: npt.NDArray[np.int64], top: int) -> int | None:
    """Index of a second peak, nearly as high as that at `top` and apart from it by a valley; None if there is none."""
    rise = int(curve[top] - curve.min())
    after = curve[top:] - np.minimum.accumulate(curve[top:])
    before = (curve[: top + 1][::-1] - np.minimum.accumulate(curve[: top + 1][::-1]))[::-1]
    apart = np.concatenate([before[:-1], after]) >= _VALLEY * rise
    heights = np.where(apart, curve, 0)
    second = int(heights.argmax())
    return second if rise > 0 and heights[second] >= (1 - _SHARE) * curve[top] and rise >= _LEAST else None


def _leading(case: Case, place: int, begun: int) -> Frame | None:
    """The line with most bytes at `place` of what was made since event `begun`."""
    shares: Sequence[object] = [
        share.of for share in case.by_line(case.allocations.live_at(place) & (case.allocations.made >= begun))
    ]
    return next((line for line in shares if isinstance(line, Frame)), None)
