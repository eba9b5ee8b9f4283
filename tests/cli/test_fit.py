"""`hotbed fit`, as typed, on programs that need nothing but torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hotbed.settings.toml import load

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Hotbed

    Fit = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.torch

MIB = 1 << 20
TRAINING = """
import sys, torch
size = int(sys.argv[1]) if len(sys.argv) > 1 else 16
weight = torch.nn.Parameter(torch.empty(size << 18, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, foreach=False)
for step in range(5):
    weight.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step)
"""


@pytest.fixture(scope="module")
def fit(hotbed_cli: Hotbed) -> Fit:
    """Writes `program` to train.py in a folder, and runs `hotbed fit` with the arguments there."""

    def run(
        folder: Path, *args: str, code: int = 0, program: str = TRAINING, hotbed: Hotbed = hotbed_cli
    ) -> subprocess.CompletedProcess[str]:
        (folder / "train.py").write_text(program)
        return hotbed("fit", *args, code=code, cwd=folder)

    return run


@pytest.fixture(scope="module")
def trained(
    fit: Fit, hotbed_fresh: Hotbed, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], str, Path]:
    """JSON of a training run in new interpreters, what went to stderr, and the folder."""
    folder = tmp_path_factory.mktemp("trained")
    args = ("--json", "--budget", "memory.json", "--update-budget", "train.py", "16")
    result = fit(folder, *args, hotbed=hotbed_fresh)
    return json.loads(result.stdout), result.stderr, folder


def test_json_has_what_is_promised(trained: tuple[dict[str, Any], str, Path]) -> None:
    promised = {
        "peak_allocated_bytes",
        "peak_reserved_bytes",
        "peak_reserved_range_bytes",
        "device_used_bytes",
        "by_category",
        "steps",
        "fits",
        "guesses",
        "not_modelled",
        "trace",
        "wall_seconds",
        "host_peak_bytes",
    }
    assert promised <= trained[0].keys()


def test_the_peak_is_that_of_the_tensors_held(trained: tuple[dict[str, Any], str, Path]) -> None:
    """A parameter, its gradient and its momentum of 16 MiB each, and a sum that autograd expands without memory."""
    found = trained[0]
    assert found["optimizer_steps"] == 3
    assert 48 * MIB <= found["peak_allocated_bytes"] < 49 * MIB
    held = {row["category"]: row["at_peak_bytes"] for row in found["by_category"]}
    assert sum(held.values()) == found["peak_allocated_bytes"]
    assert held["parameters"] == held["gradients"] == held["optimizer state"] == 16 * MIB


def test_with_json_the_output_of_the_script_goes_to_stderr(trained: tuple[dict[str, Any], str, Path]) -> None:
    assert "step 0" in trained[1]


def test_the_trace_can_be_replayed(trained: tuple[dict[str, Any], str, Path]) -> None:
    import hotbed

    found, _, folder = trained
    assert found["trace"] == "train.fit.hbt"
    outcome = hotbed.replay(folder / found["trace"], detail=False)
    assert outcome.peak_reserved_bytes == found["peak_reserved_bytes"]


def test_the_report_fits_a_screen_and_a_budget_stops_what_has_grown(
    fit: Fit, tmp_path: Path, trained: tuple[dict[str, Any], str, Path]
) -> None:
    """The same program with 20 MiB instead of 16, and with settings out of hotbed.toml."""
    (tmp_path / "hotbed.toml").write_text('schema = 1\n[memory]\nsettings = "expandable_segments:True"\n')
    budget = (trained[2] / "memory.json").read_text()
    entry = "train.py {} on NVIDIA H100 80GB HBM3{}".format
    budget = budget.replace(entry(16, ""), entry(20, " with expandable_segments:True"))
    (tmp_path / "memory.json").write_text(budget)
    result = fit(tmp_path, "--budget", "memory.json", "--fail-over", "5%", "train.py", "20", code=1)
    lines = result.stdout.splitlines()
    assert lines[:2] == ["step 0", "step 1"]
    assert lines[2].startswith("fits NVIDIA H100 80GB HBM3: ")
    assert "hotbed tune train.fit.hbt" in result.stdout
    assert len(lines) < 50
    assert "expandable_segments:True" in next(line for line in lines if line.startswith("peak reserved"))
    assert "over budget: peak allocated" in result.stderr
    assert "(+25.0 %)" in result.stderr


def test_what_does_not_fit_is_answered_with_what_it_needs(fit: Fit, tmp_path: Path) -> None:
    """Parameter, gradient and momentum of 6 GiB each on a T4 of 14.7 GiB; [needs] says so too."""
    result = fit(tmp_path, "--gpu", "t4", "--write", "train.py", "6144", code=1)
    verdict = next(line for line in result.stdout.splitlines() if line.startswith("does not fit"))
    assert "needs 18." in verdict
    assert "has 14.7 GiB" in verdict
    needs = load(tmp_path / "hotbed.toml").needs
    assert needs.gpu == "Tesla T4"
    assert needs.device_used_bytes is not None
    assert needs.device_used_bytes > 18 << 30


def test_a_script_that_fails_shows_its_own_error(fit: Fit, tmp_path: Path) -> None:
    raising = "import torch\nx = torch.empty(1 << 20, device='cuda')\nraise ValueError('no such thing')\n"
    result = fit(tmp_path, "train.py", program=raising, code=3)
    assert "ValueError: no such thing" in result.stderr
    assert "the program failed (ValueError: no such thing)" in result.stdout


@pytest.mark.slow
def test_the_largest_value_is_that_of_the_arithmetic(fit: Fit, tmp_path: Path) -> None:
    """b GiB three times over beside half a GiB of overhead: 4 is the most that 14.7 GiB hold."""
    program = TRAINING.replace("int(sys.argv[1])", "1024 * int(sys.argv[1])")
    result = fit(tmp_path, "--gpu", "t4", "--max", "b=1..6", "--json", "train.py", "{b}", program=program)
    found = json.loads(result.stdout)
    assert (found["value"], found["next_value"]) == (4, 5)
    verdicts = {probe["values"]["b"]: probe["verdict"] for probe in found["probes"]}
    assert {verdict for b, verdict in verdicts.items() if int(b) <= 4} == {"fits"}
    assert {verdict for b, verdict in verdicts.items() if int(b) > 4} == {"too large"}


def test_a_function_is_run_in_a_fresh_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"def train():\n    import sys\n    sys.argv[1:] = ['16']\n    exec({TRAINING!r}, {{}})\n"
    (tmp_path / "my_training.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import my_training

    import hotbed

    found = hotbed.fit(my_training.train, gpu="h200", echo="none")
    assert found.optimizer_steps == 3
    assert 48 * MIB <= found.peak_allocated_bytes < 49 * MIB
    assert "torch" not in vars(my_training)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["missing.py"], 2, "missing.py"),
        ([], 2, "PROGRAM"),
        (["--gpu", "h300", "train.py"], 2, "h300"),
        (["--max", "b=1", "train.py", "{b}"], 2, "b=1..1024"),
        (["--max", "b=1..4", "train.py"], 2, "{b}"),
        (["--max", "b=1..4", "--max", "c=1..4", "train.py", "{b}", "{c}"], 2, "--max"),
        (["--vary", "b=1,2", "train.py", "{b}", "{c}"], 2, "{c}"),
        (["--fail-over", "5%", "train.py"], 2, "--budget"),
        (["--settings", "no_such_key:1", "train.py"], 2, "no_such_key"),
        (["."], 2, "a folder"),
        (["--gpu", "missing.toml", "train.py"], 2, "missing.toml"),
        (["-o", "train.py", "train.py"], 2, "exists"),
    ],
)
def test_bad_input_is_named_before_anything_runs(
    fit: Fit, tmp_path: Path, args: list[str], code: int, words: str
) -> None:
    result = fit(tmp_path, *args, code=code)
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
