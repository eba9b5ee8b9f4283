"""1x1 convolutions with channels last are products that cuBLASLt splits: nobody knows how far, and a run says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.gpu import find_gpu
from hotbed.predicting.program import Program
from hotbed.predicting.running import RunOptions, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.torch

CONVOLUTION = """
import torch
net = torch.nn.Conv2d(256, 64, {kernel}).cuda().to(memory_format=torch.channels_last)
x = torch.randn(8, 256, 56, 56, device="cuda").to(memory_format=torch.channels_last)
net(x).sum().backward()
"""


@pytest.mark.parametrize(("kernel", "told"), [(1, True), (3, False)])
def test_only_pointwise_convolutions_with_channels_last_are_told(
    tmp_path: Path, kernel: int, told: bool
) -> None:
    (tmp_path / "program.py").write_text(CONVOLUTION.format(kernel=kernel))
    program = Program("script", "program.py", folder=str(tmp_path))
    found = run(program, find_gpu("h200"), RunOptions(echo="none"))
    assert any("17 MiB" in sentence for sentence in found.not_modelled) == told
