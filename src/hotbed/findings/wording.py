"""Turns of phrase that several findings share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.findings.case import Case
    from hotbed.trace.recorded import Step

_PHASES = {"setup": "set-up", "train": "training step", "eval": "evaluation before step"}


def event_words(case: Case, event: int) -> str:
    """Where event number `event` lies: "event 12 of 400 (training step 3)"."""
    step = case.step_at(event)
    inside = f" ({step_words(step)})" if step is not None else ""
    return f"event {max(event, 0)} of {len(case.trace.events)}{inside}"


def step_words(step: Step) -> str:
    """`step` in words: "training step 3", "set-up"."""
    return _PHASES[step.phase] if step.phase == "setup" else f"{_PHASES[step.phase]} {step.number}"


def listed(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(number: int, one: str, many: str | None = None) -> str:
    """ "1 block", "2 blocks"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def line_words(filename: str, line: int) -> str:
    """A line within a sentence: file name without folders, and number."""
    return f"{filename.rpartition('/')[2]}:{line}"
