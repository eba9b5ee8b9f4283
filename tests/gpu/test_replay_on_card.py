"""A program on a real card, recorded there, against its replay on the phantom: needs an NVIDIA GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import hotbed
from hotbed.errors import HotbedError
from hotbed.gpu.live import live_gpus
from hotbed.replaying import Outcome, Replayer, compile_trace, gpu_for

if TYPE_CHECKING:
    from pathlib import Path


def has_gpu() -> bool:
    try:
        return bool(live_gpus()) and os.environ.get("HOTBED_PHANTOM") != "1"
    except HotbedError:
        return False


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not has_gpu(), reason="no NVIDIA GPU on this machine")]

PROGRAM = """
import json, random, sys, torch
draw = random.Random(7)
if sys.argv[1]:
    torch.cuda.memory._record_memory_history("all", context=None)
if sys.argv[2]:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(int(sys.argv[2]) / total)
live, oom = [], False
try:
    for step in range(3000):
        if live and draw.random() < 0.5:
            live.pop(draw.randrange(len(live)))
        else:
            size = int(2 ** draw.uniform(9, 26))
            live.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        if len(live) > 60:
            del live[:30]
except torch.cuda.OutOfMemoryError:
    oom = True
if sys.argv[1]:
    torch.cuda.memory._dump_snapshot(sys.argv[1])
print(json.dumps({**torch.cuda.memory_stats(), "oom": oom}))
"""


def on_the_card(settings: str, snapshot: Path | None = None, cap_bytes: int | None = None) -> dict[str, Any]:
    """memory_stats of PROGRAM on the GPU of this machine."""
    argv = [sys.executable, "-c", PROGRAM, str(snapshot or ""), str(cap_bytes or "")]
    env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def replays(snapshot: Path, settings: str, cap_bytes: int | None) -> list[Outcome]:
    """One outcome for each rule by which the driver might choose addresses, the best guess first."""
    trace = hotbed.load_trace(snapshot)
    program = compile_trace(trace)
    with Replayer(gpu_for(None, program)) as replayer:
        return [
            replayer.replay(trace, program, settings, cap_bytes, detail=False, addresses=rule)
            for rule in ("recorded", "driver", "ascending", "descending")
        ]


@pytest.mark.parametrize(
    ("settings", "cap_mib"),
    [
        ("", None),
        ("expandable_segments:True", None),
        ("max_split_size_mb:32", None),
        ("roundup_power2_divisions:4", None),
        ("expandable_segments:True", 480),
        ("expandable_segments:True", 490),
        ("max_split_size_mb:32", 560),
        ("garbage_collection_threshold:0.6", 570),
    ],
)
def test_the_card_does_what_the_replay_said(tmp_path: Path, settings: str, cap_mib: int | None) -> None:
    cap = cap_mib << 20 if cap_mib else None
    on_the_card("", tmp_path / "snapshot.pickle")
    outcomes = replays(tmp_path / "snapshot.pickle", settings, cap)
    outcome = outcomes[0]
    truth = on_the_card(settings, cap_bytes=cap)
    assert outcome.out_of_memory == truth["oom"]
    assert outcome.peak_reserved_bytes == truth["reserved_bytes.all.peak"]
    assert outcome.peak_requested_bytes == truth["requested_bytes.all.peak"]
    # Up to torch 2.11 the address decides between equal blocks, and some are handed out with an unsplit rest: under
    # other settings than the recorded ones addresses are a guess, so one of the guesses must give the card's figure.
    assert truth["allocated_bytes.all.peak"] in {other.peak_allocated_bytes for other in outcomes}
    assert outcome.device_mallocs == truth["num_device_alloc"]
    assert outcome.device_frees == truth["num_device_free"]
