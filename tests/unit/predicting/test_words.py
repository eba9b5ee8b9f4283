"""Margins, budgets and remarks: small rules, each with its figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import HotbedError
from hotbed.predicting import Prediction, Range
from hotbed.predicting.budget import against_budget, with_budget
from hotbed.predicting.margin import margin_bytes
from hotbed.predicting.prediction import Overhead
from hotbed.predicting.program import Program
from hotbed.predicting.remarks import undershooting, warnings_of
from hotbed.trace.marking.phases import StepMark
from tests.unit.invented import ALLOC, MIB, Event, freed, trace_of, training
from tests.unit.predicting.runs import device_of, run_of

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.predicting.script_run import DeviceRun, Ending

GIB = 1 << 30


@pytest.mark.parametrize(
    ("peak", "high", "expected"),
    [
        (10 * GIB, 10 * GIB, 104 * MIB),
        (10 * GIB, 10 * GIB + 150 * MIB, 150 * MIB),
        (10 * GIB, 12 * GIB, int(0.02 * 10 * GIB)),
        (20 * MIB, 20 * MIB, int(0.02 * 20 * MIB)),
        (0, 0, 0),
    ],
)
def test_a_margin_is_one_percent_or_what_layouts_need_and_never_above_two(
    peak: int, high: int, expected: int
) -> None:
    assert margin_bytes(peak, Range(peak, high)) == expected


def prediction(reserved: int) -> Prediction:
    return Prediction(
        program="train.py",
        gpu="NVIDIA H200",
        settings="",
        torch_version="2.14.1",
        ending="steps",
        optimizer_steps=3,
        device=0,
        peak_allocated_bytes=GIB,
        peak_reserved_bytes=reserved,
        peak_reserved_range_bytes=Range(reserved, reserved),
        device_used_bytes=reserved,
        overhead=Overhead(0, (), "", estimated=False),
        by_category=(),
        steps=(),
        fits=(),
        fits_asked=True,
        margin_bytes=0,
        recommended_settings=None,
        guesses=(),
        reads=(),
        not_modelled=(),
        warnings=(),
        error=None,
        script_exit_code=None,
        trace=None,
        wall_seconds=1.0,
        host_peak_bytes=0,
        passes=(),
    )


def budget(folder: Path, *entries: tuple[str, int]) -> Path:
    """A budget file in `folder` with reserved bytes for the scripts named, which are beside it."""
    path = folder / "memory.json"
    for name, reserved in entries:
        path.write_text(with_budget(path, Program("script", str(folder / name)), prediction(reserved)))
    return path


def test_growth_is_measured_against_the_budget_that_was_written(tmp_path: Path) -> None:
    path = budget(tmp_path, ("train.py", 2 * GIB))
    train = Program("script", str(tmp_path / "train.py"))
    growths = {growth.figure: growth.percent for growth in against_budget(path, train, prediction(3 * GIB))}
    assert growths == {"peak_allocated_bytes": 0.0, "peak_reserved_bytes": 50.0}


def test_scripts_of_one_name_in_two_folders_have_a_budget_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = budget(tmp_path, ("a/train.py", GIB), ("b/train.py", 2 * GIB))
    monkeypatch.chdir(path.parent)
    assert against_budget(path, Program("script", "a/train.py"), prediction(GIB))[1].percent == 0.0
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    assert against_budget(path, Program("script", "train.py"), prediction(2 * GIB))[1].percent == 0.0


def test_a_program_without_budget_is_named(tmp_path: Path) -> None:
    path = budget(tmp_path, ("train.py", GIB))
    new = Program("script", str(tmp_path / "new.py"))
    with pytest.raises(HotbedError, match=r"no budget for 'new\.py on NVIDIA H200'"):
        against_budget(path, new, prediction(GIB))
    path.write_text("[]")
    with pytest.raises(HotbedError, match="no budget file"):
        against_budget(path, new, prediction(GIB))


def test_a_model_built_on_the_cpu_is_warned_about_with_its_size() -> None:
    device = device_of(training([MIB] * 4))
    words = list(warnings_of(run_of(device, host_model_bytes=12 * GIB), device))
    assert "built on the CPU first, 12.0 GiB" in words[0]
    assert not list(warnings_of(run_of(device, host_model_bytes=MIB), device))


def leaking(kept: int, steps: int) -> DeviceRun:
    """Each step makes two blocks of 4 MiB; `kept` of them are never freed, the other dies in the next step."""
    events: list[Event] = []
    marks = []
    carried: list[Event] = []
    for step in range(steps):
        first = len(events)
        events += carried
        blocks = [(0x10000000 * (2 * step + number + 1), 4 * MIB) for number in range(2)]
        events += [(ALLOC, *block) for block in blocks]
        carried = [event for block in blocks[kept:] for event in freed(*block)]
        marks.append(StepMark("train", first, len(events), 0.1))
    return device_of(trace_of(events), steps=tuple(marks))


@pytest.mark.parametrize(
    ("kept", "steps", "told"), [(0, 5, False), (1, 3, True), (1, 2, False), (2, 4, True)]
)
def test_what_every_step_leaves_behind_is_told_and_what_the_next_one_frees_is_not(
    kept: int, steps: int, told: bool
) -> None:
    device = leaking(kept, steps)
    words = [word for word in warnings_of(run_of(device), device) if "grows" in word]
    assert [f"grows by {4 * kept}.0 MiB or more each step" in word for word in words] == [True] * told


def test_memory_errors_that_the_program_caught_are_told() -> None:
    device = device_of(training([MIB] * 4), ooms=2)
    assert "ran out of memory 2 times, caught that" in (undershooting(run_of(device), device) or "")


@pytest.mark.parametrize(
    ("ending", "code", "failed"),
    [
        ("end", 0, False),
        ("end", None, False),
        ("end", 2, True),
        ("error", 1, True),
        ("killed", None, True),
        ("out_of_memory", 1, False),
        ("time", None, False),
    ],
)
def test_a_bad_end_of_its_own_is_a_failure(ending: Ending, code: int | None, failed: bool) -> None:
    found = replace(prediction(GIB), ending=ending, script_exit_code=code)
    assert found.program_failed is failed
