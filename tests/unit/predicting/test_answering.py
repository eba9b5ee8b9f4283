"""From a run to the prediction: which device counts, what a card must have, what other layouts change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hotbed.gpu import find_gpu
from hotbed.predicting.answering import Question, predict
from hotbed.predicting.capacity import roomy
from hotbed.predicting.program import Program
from hotbed.predicting.script_run import Read, ScriptError, Workspace
from hotbed.replaying import Replayer
from hotbed.trace import Action, load_trace
from tests.unit.invented import training
from tests.unit.predicting.runs import device_of, run_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hotbed.predicting import Prediction
    from hotbed.predicting.script_run import ScriptRun
    from hotbed.trace import Trace

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("forking")]

MIB = 1 << 20
H200 = find_gpu("h200")
PROGRAM = Program("script", "train.py", ("--lr", "3e-4"))


@pytest.fixture(scope="module")
def replayer() -> Iterator[Replayer]:
    with Replayer(roomy(H200)) as one:
        yield one


@pytest.fixture(scope="module")
def trace(data: Path) -> Trace:
    return load_trace(data / "h200" / "resnet50.record.pickle.xz")


def predicted(run: ScriptRun, replayer: Replayer, **changes: Any) -> Prediction:
    failed = changes.pop("failed", None)
    question = replace(Question(H200, cards=False), **changes)
    return predict(PROGRAM, run, question, lambda: replayer, failed)


def test_device_used_is_reserved_memory_and_overhead(replayer: Replayer, trace: Trace) -> None:
    found = predicted(run_of(device_of(trace), libraries=(("kernels", 9),)), replayer)
    assert found.device_used_bytes == found.peak_reserved_bytes + found.overhead.bytes
    assert sum(size for _, size in found.overhead.parts) == found.overhead.bytes
    assert found.program == "train.py --lr 3e-4"


def test_memory_that_the_program_took_past_torch_counts(replayer: Replayer, trace: Trace) -> None:
    """An extension that calls cudaMalloc itself: the driver gave out 300 MiB that no allocator of torch has."""
    device = device_of(trace)
    given = device.peak_reserved_bytes + (H200.context_bytes or 0)
    plain = predicted(run_of(replace(device, peak_driver_bytes=given)), replayer)
    more = predicted(run_of(replace(device, peak_driver_bytes=given + 300 * MIB)), replayer)
    assert more.device_used_bytes - plain.device_used_bytes == 300 * MIB


def test_the_fullest_device_stands_for_the_program(replayer: Replayer, trace: Trace) -> None:
    small = replace(device_of(training([MIB] * 4)), device=1)
    found = predicted(run_of(small, device_of(trace)), replayer)
    assert found.device == 0
    (other,) = found.other_devices
    assert (other.device, other.peak_reserved_bytes) == (1, small.peak_reserved_bytes)
    assert sum(held.at_peak_bytes for held in other.by_category) == small.peak_allocated_bytes


def test_cards_come_by_memory_behind_the_one_asked_for(replayer: Replayer, trace: Trace) -> None:
    found = predicted(run_of(device_of(trace)), replayer, cards=True)
    assert found.fits[0].gpu == H200.name
    totals = [card.total_bytes for card in found.fits[1:]]
    assert totals == sorted(totals)
    assert len({card.gpu for card in found.fits}) == len(found.fits)
    assert all(card.fits == (card.headroom_bytes >= 0) for card in found.fits)
    assert all(card.headroom_bytes == card.total_bytes - card.smallest_bytes for card in found.fits)


def test_only_other_architectures_and_foreign_overheads_are_estimates(
    replayer: Replayer, trace: Trace
) -> None:
    found = predicted(run_of(device_of(trace)), replayer, cards=True)
    by_name = {card.gpu: card.estimated for card in found.fits}
    assert by_name[H200.name] is None
    assert "other workspaces" in str(by_name["NVIDIA L4"])


def test_other_layouts_widen_the_range_by_what_they_move(replayer: Replayer, trace: Trace) -> None:
    """The largest block of the trace as a workspace that another layout wants 64 MiB larger, or not at all."""
    made = np.where(trace.events.action == Action.ALLOC, trace.events.size, 0)
    event = int(made.argmax())
    size = int(made[event])
    device = device_of(trace, workspaces=(Workspace(event, "cudnn", size, (size + 64 * MIB, 0)),))
    found = predicted(run_of(device), replayer)
    spread = found.peak_reserved_range_bytes
    assert spread.low <= found.peak_reserved_bytes <= spread.high
    assert spread.high >= found.peak_reserved_bytes + 64 * MIB
    assert found.margin_bytes <= 0.02 * found.peak_reserved_bytes


def test_without_such_workspaces_there_is_one_value(replayer: Replayer, trace: Trace) -> None:
    found = predicted(run_of(device_of(trace)), replayer)
    spread = found.peak_reserved_range_bytes
    assert spread.low == spread.high == found.peak_reserved_bytes


def test_a_program_that_ran_out_does_not_fit_and_says_what_it_would_need(
    replayer: Replayer, trace: Trace
) -> None:
    card = replace(H200, total_bytes=2000 * MIB)
    error = ScriptError("torch.OutOfMemoryError", "CUDA out of memory.", "Traceback ...")
    failed = run_of(gpu=card, ending="out_of_memory", error=error, optimizer_steps=0)
    found = predicted(run_of(device_of(trace)), replayer, gpu=card, failed=failed)
    assert not found.fits_asked
    assert found.ending == "out_of_memory"
    assert found.fits[0].smallest_bytes > card.total_bytes
    assert "runs out of memory on NVIDIA H200" in found.warnings[0]


def test_a_program_that_uses_no_gpu_fits(replayer: Replayer) -> None:
    found = predicted(run_of(ending="end", optimizer_steps=0, used_gpu=False), replayer)
    assert found.fits_asked
    assert found.peak_reserved_bytes == found.device_used_bytes == 0
    assert any("no memory from any GPU" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"unrecorded": "a child used the GPU"}, "a child used the GPU"),
        ({"ending": "error", "script_exit_code": 1, "used_gpu": False}, "failed before it used a GPU"),
        ({"ending": "time", "optimizer_steps": 1}, "time limit came before two training steps"),
        ({"ending": "time", "optimizer_steps": 2}, None),
        ({"ending": "end", "script_exit_code": 3, "optimizer_steps": 0}, "failed before two training steps"),
        ({"ending": "end", "script_exit_code": 0, "optimizer_steps": 0}, None),
    ],
)
def test_what_was_not_seen_is_not_said_to_fit(
    replayer: Replayer, trace: Trace, changes: dict[str, Any], reason: str | None
) -> None:
    devices = (device_of(trace),) if changes.get("used_gpu", True) else ()
    found = predicted(run_of(*devices, **changes), replayer)
    assert found.fits_asked is (True if reason is None else None)
    assert (reason or "") in (found.unknown or "")


def test_reads_that_rest_on_a_policy_are_guesses(replayer: Replayer) -> None:
    reads = (Read("a.py:3 in f", "item", 2, known=True), Read("a.py:9 in g", "nonzero", 1, False, "half"))
    found = predicted(run_of(reads=reads), replayer)
    assert [guess.where for guess in found.guesses] == ["a.py:9 in g"]
    assert found.to_json()["guesses"][0]["answer"] == "half"
