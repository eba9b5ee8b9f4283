"""Small traces with lines of code, steps and a recorder's notes, for tests of findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotbed.trace import Action, Frame
from hotbed.trace.model import NONE
from hotbed.trace.recorded import Recorded, Step
from tests.unit.invented import trace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.trace import Trace

ms = 1000


class Program:
    """Writes events one by one as a program would cause them, each from a line of `main.py`."""

    def __init__(self) -> None:
        self.events: list[tuple[Action, int, int, int]] = []
        self.lines: list[int] = []
        self.categories: list[str] = []
        self.steps: list[Step] = []
        self.calls: list[Any] = []

    def add(
        self, action: Action, address: int, size: int, line: int = 0, stream: int = 0, category: str = ""
    ) -> None:
        self.events.append((action, address, size, stream))
        self.lines.append(line)
        self.categories.append(category)

    def step(self, begun: int, phase: Any = "train", **more: Any) -> None:
        """Everything since event number `begun` was one step of 100 ms."""
        number = sum(step.phase == "train" for step in self.steps)
        done = [event[0] for event in self.events[begun:]]
        counts = {
            "device_mallocs": sum(action in (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP) for action in done),
            "device_frees": sum(action in (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP) for action in done),
        }
        at = 100 * ms * len(self.steps)
        self.steps.append(Step(phase, number, begun, len(self.events), at, at + 100 * ms, **(counts | more)))

    def trace(self, recorded: dict[str, Any] | None = None, **changes: Any) -> Trace:
        known = sorted(set(self.lines) - {0})
        names = sorted(set(self.categories) - {""})
        made = trace_of(self.events)
        stack = np.array([known.index(line) if line else NONE for line in self.lines], np.int32)
        category = np.array([names.index(name) if name else NONE for name in self.categories], np.int32)
        notes = {"steps": tuple(self.steps), "calls": tuple(self.calls), **(recorded or {})}
        stacks = tuple((Frame("main.py", line, "main"),) for line in known)
        return replace(
            made,
            events=replace(made.events, stack=stack, category=category),
            stacks=changes.pop("stacks", stacks),
            strings=tuple(names),
            recorded=Recorded(**notes) if any(notes.values()) else None,
            **changes,
        )


def codes(found: Sequence[Any]) -> list[str]:
    return [finding.code for finding in found]
