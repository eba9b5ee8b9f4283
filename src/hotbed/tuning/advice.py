"""What common advice would do to these traces, by replay, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.errors import HotbedError
from hotbed.replaying import OWN_SEGMENT, Outcome, Replayer
from hotbed.settings import AllocatorSettings
from hotbed.tuning.recommendation import Advice
from hotbed.units import format_size

if TYPE_CHECKING:
    from hotbed.tuning.evaluator import Subject
    from hotbed.tuning.space import Space

COMMON = ("max_split_size_mb:128", "expandable_segments:True")
ASYNC = "backend:cudaMallocAsync"
_SAME_SHARE = 0.005


@dataclass(frozen=True)
class _Judged:
    """A piece of advice replayed beside the default."""

    advice: str
    default: Outcome
    outcome: Outcome

    @property
    def difference_bytes(self) -> int:
        return self.outcome.peak_reserved_bytes - self.default.peak_reserved_bytes

    @property
    def verdict(self) -> str:
        if abs(self.difference_bytes) <= _SAME_SHARE * self.default.peak_reserved_bytes:
            return "same"
        return "better" if self.difference_bytes < 0 else "worse"


def judge(subject: Subject, replayer: Replayer, space: Space, python: str | None) -> tuple[Advice, ...]:
    """Each piece of common advice against the default on `subject`."""
    default = replayer.replay(subject.trace, subject.program)
    judged = [_judge_native(subject, replayer, space, text, default) for text in COMMON]
    return (*judged, _judge_async(subject, replayer, default, python))


def _judge_native(subject: Subject, replayer: Replayer, space: Space, text: str, default: Outcome) -> Advice:
    if not space.allows(AllocatorSettings.parse(text)):
        return Advice(text, None, None, None, "not applicable", "this torch or this use does not allow it")
    judged = _Judged(text, default, replayer.replay(subject.trace, subject.program, text))
    return Advice(
        advice=text,
        peak_reserved_bytes=judged.outcome.peak_reserved_bytes,
        against_default_bytes=judged.difference_bytes,
        device_calls=judged.outcome.cost.device_calls,
        verdict=judged.verdict,
        why=_why(judged),
    )


def _judge_async(subject: Subject, replayer: Replayer, default: Outcome, python: str | None) -> Advice:
    try:
        with Replayer(replayer.gpu, python=python, backend="cudaMallocAsync", parallel=1) as other:
            outcome = other.replay(subject.trace, subject.program, ASYNC, detail=False)
    except HotbedError as error:
        return Advice(ASYNC, None, None, None, "not applicable", error.message)
    return Advice(
        advice=ASYNC,
        peak_reserved_bytes=outcome.peak_reserved_bytes,
        against_default_bytes=outcome.peak_reserved_bytes - default.peak_reserved_bytes,
        device_calls=None,
        verdict="estimate",
        why=outcome.estimate or "",
    )


def _why(judged: _Judged) -> str:
    """What was reserved and of no use at the peak, default beside advice, and what it costs in driver calls."""
    calls = f"{judged.outcome.cost.device_calls - judged.default.cost.device_calls:+d} driver calls"
    if judged.verdict == "same":
        return f"makes no difference here; {calls}"
    before, after = _largest_waste(judged.default), _largest_waste(judged.outcome)
    return f"of no use at the peak: {after}; with the default: {before}; {calls}"


def _largest_waste(outcome: Outcome) -> str:
    found = outcome.fragmentation.unusable if outcome.fragmentation else ()
    wasted = [free for free in found if free.reason != OWN_SEGMENT]
    if not wasted:
        return "nothing"
    return f"{format_size(wasted[0].bytes)} in {wasted[0].blocks} × {wasted[0].reason}"
