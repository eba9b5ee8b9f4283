"""Sentences that a reader of a prediction needs: what it rests on, and what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.predicting.growth import growth_per_step_bytes
from hotbed.predicting.script_run import failed_by_itself
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.predicting.script_run import DeviceRun, ScriptRun

_MODEL_WORTH_A_WORD = 256 * MIB
_GROWTH_WORTH_A_WORD = MIB

_STOPPED = {
    "time": "stopped by the time limit after {steps} optimizer steps: what would have come later is not in the figures",
    "host_memory": "stopped by the host memory limit after {steps} optimizer steps: what would have come later is not "
    "in the figures",
    "interrupted": "interrupted after {steps} optimizer steps: what would have come later is not in the figures",
    "killed": "the program was killed after {steps} optimizer steps: what would have come later is not in the figures",
    "error": "the program failed after {steps} optimizer steps: the figures end there",
}


_LIMITS = {
    "time": "the time limit came",
    "host_memory": "the host memory limit came",
    "interrupted": "it was interrupted",
}
_STEPS_THAT_TELL = 2
"""The first makes gradients and optimizer state; the second is the first with all of them from its beginning."""


def unknown_why(run: ScriptRun) -> str | None:
    """Why figures that fit do not say that the program fits, in words; None where they do."""
    if run.unrecorded is not None:
        return run.unrecorded
    failed = failed_by_itself(run.ending, run.script_exit_code)
    if failed and not run.used_gpu:
        return "the program failed before it used a GPU"
    if run.optimizer_steps >= _STEPS_THAT_TELL or not (failed or run.ending in _LIMITS):
        return None
    return f"{_LIMITS.get(run.ending, 'the program failed')} before two training steps were over"


def undershooting(run: ScriptRun, heaviest: DeviceRun | None) -> str | None:
    """Says that the program met the end of the memory and went on with less; None if it did not."""
    if heaviest is None or not heaviest.ooms or run.ending not in ("steps", "end", "until"):
        return None
    return (
        f"the program ran out of memory {heaviest.ooms} times, caught that and went on: with more memory it would do "
        "something else"
    )


def warnings_of(run: ScriptRun, heaviest: DeviceRun | None) -> Iterator[str]:
    """What to know before relying on the figures of `run`; nothing where all is well."""
    if run.ending in _STOPPED:
        yield _STOPPED[run.ending].format(steps=run.optimizer_steps)
    if heaviest is None:
        if run.unrecorded is None:
            yield "the program took no memory from any GPU"
        return
    if not run.optimizer_steps and run.ending not in ("error", "killed") and _trains(heaviest):
        yield "no optimizer step was seen: optimizer state is in the figures only as far as the program made it"
    if heaviest.alloc_retries:
        yield f"the allocator flushed its cache {heaviest.alloc_retries} times to stay within the card: steps are slower near the limit"
    if heaviest.trace is None:
        yield "this allocator backend records no history: no categories, no steps, and cards are compared by peaks alone"
    if run.host_model_bytes >= _MODEL_WORTH_A_WORD:
        yield (
            f"the model was built on the CPU first, {format_size(run.host_model_bytes)} of host memory: build it under "
            'torch.device("cuda") or torch.device("meta") to do without'
        )
    if heaviest.trace is not None:
        yield from _growth(growth_per_step_bytes(heaviest.trace, heaviest.steps))


def _trains(device: DeviceRun) -> bool:
    return any(mark.phase == "train" for mark in device.steps)


def _growth(per_step_bytes: int) -> Iterator[str]:
    if per_step_bytes >= _GROWTH_WORTH_A_WORD:
        yield f"live memory grows by {format_size(per_step_bytes)} or more each step: a longer run needs more than this"
