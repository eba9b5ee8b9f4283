"""The report of a prediction: the verdict first, 80 columns wide, and what it rests on."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from hotbed.predicting import CategoryBytes, GpuFit, Overhead, Prediction, Range, StepPeak
from hotbed.predicting.prediction import DevicePeaks
from hotbed.predicting.script_run import Read, ScriptError
from hotbed.reporting.prediction_text import prediction_text, predictions_text

GIB = 1 << 30


def card(name: str, total: int, smallest: int, **changes: object) -> GpuFit:
    fit = GpuFit(name, total, smallest <= total, total - smallest, smallest, True, total - smallest, 0)
    return replace(fit, **changes)  # type: ignore[arg-type]


FOUND = Prediction(
    program="train.py",
    gpu="NVIDIA H100 80GB HBM3",
    settings="",
    torch_version="2.14.1+cu130",
    ending="steps",
    optimizer_steps=3,
    device=0,
    peak_allocated_bytes=28 * GIB,
    peak_reserved_bytes=30 * GIB,
    peak_reserved_range_bytes=Range(29 * GIB, 31 * GIB),
    device_used_bytes=31 * GIB,
    overhead=Overhead(GIB, (("CUDA context", GIB),), "NVIDIA H200", estimated=True),
    by_category=(CategoryBytes("parameters", 7 * GIB, 7 * GIB), CategoryBytes("activations", 21 * GIB, 21 * GIB)),
    steps=(StepPeak("train", 0, 20 * GIB, 22 * GIB, 9 * GIB, ()), StepPeak("train", 1, 28 * GIB, 30 * GIB, 9 * GIB, ())),
    fits=(
        card("NVIDIA H100 80GB HBM3", 79 * GIB, 30 * GIB),
        card("NVIDIA A100-SXM4-40GB", 39 * GIB, 30 * GIB, estimated="it ran as on NVIDIA H100 80GB HBM3"),
        card("NVIDIA GeForce RTX 4090", 23 * GIB, 30 * GIB),
    ),
    fits_asked=True,
    margin_bytes=GIB // 4,
    recommended_settings="expandable_segments:True",
    guesses=(Read("train.py:9 in step", "item", 3, known=False, answer="0.0"),),
    reads=(),
    not_modelled=("cudaFoo was called",),
    warnings=("live memory grows",),
    error=None,
    script_exit_code=None,
    trace="train.fit.hbt",
    wall_seconds=9.5,
    host_peak_bytes=GIB,
    passes=(),
)  # fmt: skip


def text(found: Prediction) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(prediction_text(found), crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_verdict_comes_first_and_nothing_passes_80_columns() -> None:
    lines = text(FOUND).splitlines()
    assert lines[0].split(":")[0] == "fits NVIDIA H100 80GB HBM3"
    assert "31.0 GiB of 79.0 GiB used at the peak, 48.0 GiB free" in lines[0]
    assert max(len(line) for line in lines) <= 80


def test_it_says_what_it_rests_on() -> None:
    said = " ".join(text(FOUND).split())
    for words in (
        "29.0 GiB to 31.0 GiB",
        "first step 20.0 GiB 22.0 GiB 9.0 GiB",
        "later steps (1) 28.0 GiB",
        "RTX 4090 23.0 GiB 30.0 GiB no, 7.0 GiB short",
        "note: live memory grows",
        "0.0 for item at train.py:9 in step, 3 times",
        "not modelled: cudaFoo was called",
        "next: hotbed tune train.fit.hbt",
    ):
        assert words in said


def test_what_does_not_fit_gets_a_way_out() -> None:
    small = card("Tesla T4", 14 * GIB, 30 * GIB, fits_with_recommended=True)
    said = text(replace(FOUND, fits=(small,), fits_asked=False))
    assert said.startswith("does not fit Tesla T4: needs 30.0 GiB, has 14.0 GiB")
    assert "it fits with --settings expandable_segments:True" in said


def test_a_failed_program_gets_no_tables() -> None:
    error = ScriptError("ValueError", "no such thing", "Traceback ...")
    said = text(replace(FOUND, ending="error", error=error, script_exit_code=1))
    assert said.startswith("the program failed (ValueError: no such thing)")
    assert "RTX 4090" not in said


def test_where_nothing_is_known_there_are_no_figures() -> None:
    found = replace(FOUND, fits_asked=None, unknown="a child used the GPU", uses_gpu=False, trace=None)
    said = text(found)
    assert said.startswith("nothing is known of it: a child used the GPU")
    assert "GiB" not in said
    assert "next:" not in said


def test_what_was_caught_stands_right_under_the_headline() -> None:
    said = text(replace(FOUND, undershoots="it ran out", warnings=("it ran out", "live memory grows")))
    assert said.splitlines()[1] == "and needs more than this: it ran out"
    assert said.count("it ran out") == 1


def test_each_further_gpu_has_a_line() -> None:
    held = (CategoryBytes("parameters", 2 * GIB, 2 * GIB),)
    said = text(replace(FOUND, other_devices=(DevicePeaks(1, 3 * GIB, 4 * GIB, held),)))
    (line,) = [line for line in said.splitlines() if line.startswith("cuda:1")]
    assert line.split(maxsplit=1)[1].rstrip() == "4.0 GiB  reserved; live 3.0 GiB, parameters 2.0 GiB"


def test_several_predictions_stand_against_the_first() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(predictions_text([FOUND, replace(FOUND, peak_reserved_bytes=27 * GIB)]))
    assert isinstance(console.file, io.StringIO)
    assert "-10.0 %" in console.file.getvalue()
