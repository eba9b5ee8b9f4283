"""The engine's traffic with its worker, where the messages are large."""

from __future__ import annotations

import os
import select
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hotbed
from hotbed.errors import TorchError
from hotbed.replaying import Replayer, compile_trace, gpu_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.replaying import Outcome, Program
    from hotbed.trace import Trace

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def trace(data: Path) -> Trace:
    return hotbed.load_trace(data / "h200" / "detection.record.pickle.xz")


@pytest.fixture(scope="module")
def program(trace: Trace) -> Program:
    """With 3,000 steps: a result is larger than a pipe's or a socket's buffer, and so is the program."""
    compiled = compile_trace(trace)
    starts = tuple(range(0, len(compiled), len(compiled) // 3000))
    return replace(compiled, steps=replace(compiled.steps, starts=starts))


def submitted(replayer: Replayer, trace: Trace, program: Program) -> list[Callable[[], Outcome]]:
    """Eight replays of programs that differ, so that each is sent."""
    starts = program.steps.starts
    cuts = [replace(program.steps, starts=starts[: len(starts) - cut]) for cut in range(8)]
    return [replayer.submit(trace, replace(program, steps=steps)) for steps in cuts]


def test_large_results_arrive_while_large_programs_are_sent(trace: Trace, program: Program) -> None:
    """Neither side may wait for the other."""
    with Replayer(gpu_for(None, program)) as replayer:
        peaks = {wait().peak_reserved_bytes for wait in submitted(replayer, trace, program)}
    assert len(peaks) == 1


def test_a_worker_that_is_killed_is_reported_and_leaves_nobody_behind(trace: Trace, program: Program) -> None:
    """Its children hold large results for which there is no reader any more."""
    with Replayer(gpu_for(None, program)) as replayer:
        waiting = submitted(replayer, trace, program)
        worker = replayer.engine._process.pid
        waiting[0]()
        children = [int(pid) for pid in Path(f"/proc/{worker}/task/{worker}/children").read_text().split()]
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(TorchError, match="worker ended early"):
            waiting[-1]()
    for pid in children:
        ended(pid)


def ended(pid: int) -> None:
    """Returns once process `pid`, no child of ours, has ended; the test's time limit is the only other way out."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([descriptor], [], [])
    os.close(descriptor)
