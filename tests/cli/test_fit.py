"""`hotbed fit`, as typed, on programs that need nothing but torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

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


def fit(folder: Path, *args: str, code: int = 0, program: str = TRAINING) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(program)
    command = [sys.executable, "-m", "hotbed", "fit", *args]
    env = os.environ | {"PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    env.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    result = subprocess.run(command, capture_output=True, text=True, env=env, check=False, cwd=folder)
    assert result.returncode == code, result.stdout + result.stderr
    return result


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Path]:
    """JSON of a training run, what went to stderr, and the folder."""
    folder = tmp_path_factory.mktemp("trained")
    result = fit(folder, "--json", "train.py", "16")
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
