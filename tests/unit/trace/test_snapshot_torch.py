"""Snapshots that the installed torch writes on a phantom GPU: complete, with a small ring, begun late, expandable."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hotbed.trace import Action, load_trace
from hotbed.trace.checking import check

if TYPE_CHECKING:
    from hotbed.trace import Trace

PROGRAM = """
import random, sys, torch
chance, memory, folder = random.Random(5), torch.cuda.memory, sys.argv[1]
sizes = [100, 5000, 300000, 1 << 20, 3000000, 15 << 20]

def work(steps, live, side):
    for _ in range(steps):
        if live and chance.random() < 0.4:
            live.pop(chance.randrange(len(live)))
            continue
        live.append(torch.empty(chance.choice(sizes), dtype=torch.uint8, device="cuda"))
        if chance.random() < 0.1:
            live[-1].record_stream(side)
        if len(live) > 40:
            del live[:30]
        if chance.random() < 0.02:
            torch.cuda.empty_cache()

live, side = [], torch.cuda.Stream()
memory._record_memory_history()
work(300, live, side)
memory._dump_snapshot(folder + "/complete.pickle")
memory._record_memory_history(None)
memory._record_memory_history(max_entries=200)
work(300, live, side)
memory._dump_snapshot(folder + "/ring.pickle")
memory._record_memory_history(None)
memory._record_memory_history(stacks="python")
work(100, live, side)
live.clear()
torch.cuda.empty_cache()
memory._dump_snapshot(folder + "/late.pickle")
"""


@pytest.fixture(scope="module", params=["", "expandable_segments:True"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """The three recordings of PROGRAM under one setting."""
    folder = tmp_path_factory.mktemp("torch")
    (folder / "program.py").write_text(PROGRAM)
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    env = {name: value for name, value in os.environ.items() if name not in names}
    env["PYTORCH_CUDA_ALLOC_CONF"] = request.param
    command = [
        sys.executable,
        "-m",
        "hotbed",
        "phantom",
        "run",
        "--",
        sys.executable,
        str(folder / "program.py"),
        str(folder),
    ]
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=150)
    return {name: load_trace(folder / f"{name}.pickle") for name in ("complete", "ring", "late")}


@pytest.mark.torch
def test_the_history_of_each_recording_leads_to_its_end(recorded: dict[str, Trace]) -> None:
    for trace in recorded.values():
        assert check([trace]).lines() == []


@pytest.mark.torch
def test_only_the_complete_recording_lacks_nothing(recorded: dict[str, Trace]) -> None:
    assert recorded["complete"].missing == ()
    assert len(recorded["ring"].events) == 200
    for name in ("ring", "late"):
        assert "were already there when the kept history begins" in recorded[name].missing[0]


@pytest.mark.torch
def test_stacks_name_the_program_and_steps_through_segments_are_seen(recorded: dict[str, Trace]) -> None:
    trace = recorded["late"]
    assert any(frame.filename.endswith("program.py") for stack in trace.stacks for frame in stack)
    given_back = {int(Action.SEGMENT_FREE), int(Action.SEGMENT_UNMAP)}
    assert given_back & set(trace.events.action.tolist())
