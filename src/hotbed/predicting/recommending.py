"""Allocator settings worth recommending with a prediction: by a search, or by one quick comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.errors import HotbedError
from hotbed.settings import AllocatorSettings
from hotbed.tuning import tune

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.gpu import Gpu
    from hotbed.predicting.capacity import Capacity
    from hotbed.tuning.evaluator import Evaluator

_WORTH = 0.01
"""share of reserved memory that other settings must save to be worth a recommendation"""


@dataclass(frozen=True)
class Advice:
    """`settings` None: nothing better was found than what was in force. `how` says how it was looked for."""

    settings: str | None
    how: str


def compared(capacity: Capacity, in_force: str) -> Advice:
    """The settings in force against the same with expandable segments, by what they reserve."""
    other = AllocatorSettings.parse(in_force).replace(expandable_segments=True).to_string()
    how = "expandable_segments:True is all that was tried; --tune searches"
    if "expandable_segments:True" in in_force:
        return Advice(None, "expandable segments are on already; --tune searches further")
    now, then = (capacity.outcomes(settings, [None])[0] for settings in (in_force, other))
    if then.out_of_memory or now.out_of_memory:
        return Advice(None, how)
    worth = (1 - _WORTH) * now.peak_reserved_bytes
    return Advice(other if then.peak_reserved_bytes <= worth else None, how)


def searched(
    capacity: Capacity, gpu: Gpu, goal: str, python: str | None, tell: Callable[[str], None]
) -> Advice:
    """What hotbed.tune finds for the trace on `gpu`; `tell` hears how far it is."""

    def on_progress(evaluator: Evaluator) -> None:
        tell(f"searching settings: {evaluator.replays} replays of about {evaluator.expected_replays}")

    try:
        found = tune([capacity.trace], goal, gpu=gpu, python=python, on_progress=on_progress)
    except HotbedError as error:
        return Advice(None, f"hotbed tune: {error.message}")
    how = f"found by hotbed tune, goal {goal}, in {found.replays} replays"
    return Advice(found.without_cap.settings or None, how)
