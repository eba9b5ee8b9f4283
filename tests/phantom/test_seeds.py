"""A program whose sizes rest on guesses is run with several draws of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.gpu import find_gpu
from hotbed.predicting.program import Program
from hotbed.predicting.running import RunOptions, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.torch

ROUTED = """
import random, torch
with open("begun", "a") as file:
    file.write("begun\\n")
held = random.randrange(1, 9)
chosen = torch.nn.Linear(64, 8).cuda()(torch.randn(70000, 64, device="cuda")).argmax(-1)
rows = torch.where(chosen == 3)[0]
taken = torch.empty(rows.numel(), 4096, device="cuda")
more = torch.empty(held << 28, dtype=torch.uint8, device="cuda")
"""


def test_each_seed_draws_other_guesses_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ROUTED)
    program = Program("script", "program.py", folder=str(tmp_path))
    found = run(program, find_gpu("h200"), RunOptions(echo="none"))
    assert {one.seed for one in (found, *found.further)} == {0, 1, 2}
    peaks = {one.devices[0].peak_allocated_bytes for one in (found, *found.further)}
    # Rows of 16 KiB: 8750 of them give or take 90, so the host drew the same number each time.
    assert len(peaks) == 3
    assert max(peaks) - min(peaks) < 1 << 27
    assert (tmp_path / "begun").read_text() == "begun\n"
