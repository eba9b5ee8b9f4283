"""The engine's traffic with its worker, where the messages are large."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import hotbed
from hotbed.replaying import Replayer, compile_trace, gpu_for

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.torch
def test_large_results_arrive_while_large_programs_are_sent(data: Path) -> None:
    """3,000 steps: a result is larger than a socket's buffer, and so is a program. Neither side may wait for the other."""
    trace = hotbed.load_trace(data / "h200" / "detection.record.pickle.xz")
    program = compile_trace(trace)
    starts = tuple(range(0, len(program), len(program) // 3000))
    with Replayer(gpu_for(None, program)) as replayer:
        pending = []
        for cut in range(8):
            steps = replace(program.steps, starts=starts[: len(starts) - cut])
            pending.append(replayer.submit(trace, replace(program, steps=steps)))
        peaks = {wait().peak_reserved_bytes for wait in pending}
    assert len(peaks) == 1
