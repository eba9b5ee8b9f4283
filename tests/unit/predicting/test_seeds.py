"""Several draws of guessed values: when they are made, and what they do to the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hotbed.gpu import find_gpu
from hotbed.predicting.answering import Question, predict
from hotbed.predicting.capacity import roomy
from hotbed.predicting.program import Program
from hotbed.recording.draws import further_draws
from hotbed.replaying import Replayer
from tests.unit.invented import MIB, training
from tests.unit.predicting.runs import device_of, run_of

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.predicting.script_run import ScriptRun

H200 = find_gpu("h200")
ROUTED, LOSS, METRIC, COUNTS = (
    {"operation": operation, "answer": answer, "known": False}
    for operation, answer in (
        ("nonzero", "the output of a model is noise about 0"),
        ("item", "1.0"),
        ("item", "random index below 10"),
        ("copy to host", "counts of guessed choices"),
    )
)


@pytest.mark.parametrize(
    ("reads", "ending", "seeds", "draws"),
    [
        ([LOSS, ROUTED], "steps", None, [1, 2]),
        ([COUNTS], "end", None, [1, 2]),
        ([LOSS, METRIC], "steps", None, []),
        ([{**ROUTED, "known": True}], "steps", None, []),
        ([ROUTED], "out_of_memory", None, []),
        ([METRIC], "steps", 2, [1]),
        ([ROUTED], "steps", 1, []),
    ],
)
def test_more_draws_are_made_where_sizes_follow_from_them_or_as_asked(
    tmp_path: Path, reads: list[dict[str, Any]], ending: str, seeds: int | None, draws: list[int]
) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"ending": ending, "reads": reads}))
    assert list(further_draws(seeds, report)) == draws


def sized(size: int, seed: int) -> ScriptRun:
    return run_of(device_of(training([size] * 4, lasting=size)), seed=seed)


@pytest.mark.torch
def test_range_and_margin_reach_as_far_above_the_largest_as_the_seeds_lie_apart() -> None:
    small, large = sized(100 * MIB, 0), sized(130 * MIB, 1)
    low, high = (run.devices[0].peak_reserved_bytes for run in (small, large))
    with Replayer(roomy(H200)) as replayer:
        question = Question(H200, cards=False)
        program = Program("script", "train.py")
        alone, found = (
            predict(program, run, question, lambda: replayer)
            for run in (large, replace(large, further=(small,)))
        )
    spread = found.peak_reserved_range_bytes
    assert (found.peak_reserved_bytes, spread.low, spread.high) == (high, low, 2 * high - low)
    assert found.margin_bytes == alone.margin_bytes + high - low
    assert [(one.seed, one.peak_reserved_bytes) for one in found.seeds] == [(0, low), (1, high)]
    assert alone.seeds == ()
