"""Convolutions, recurrent networks and attention: the user's own cuDNN says what workspace they take.

Sizes were read off an H200 with cuDNN 9.19; 9.9 to 9.24 give the same for these problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.torch

LENT = """
import torch.nn as nn, torch.nn.functional as F

def zeros(*shape, **options):
    return torch.zeros(*shape, device="cuda", requires_grad=True, **options)

def lent():
    return [entry for entry in phantom.workspaces() if control.LIBRARIES[entry.library] == "cudnn"]
"""


def test_a_convolution_takes_the_workspace_that_it_takes_on_the_card(on_phantom: Server) -> None:
    """On the H200 a description without its GPC layout would ask for 65,863,891 bytes."""
    result = on_phantom(
        LENT + "nn.Conv2d(128, 128, 3, 2, 1, bias=False).cuda()(zeros(32, 128, 56, 56))\n"
        "answer(bytes=[entry.bytes for entry in lent()], remarks=phantom.remarks(), peak=stat('allocated_bytes.all.peak'),"
        " kept=stat('allocated_bytes.all.current'))"
    )
    assert result.bytes == [64815120]
    assert result.peak - result.kept >= 64815120
    assert not result.remarks


def test_every_kind_runs_forward_and_backward(on_phantom: Server) -> None:
    result = on_phantom(
        LENT
        + """
kinds = {
    "1-D": lambda: nn.Conv1d(64, 128, 3).cuda()(zeros(4, 64, 100)),
    "3-D": lambda: nn.Conv3d(16, 32, 3).cuda()(zeros(2, 16, 8, 28, 28)),
    "transposed": lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1).cuda()(zeros(4, 64, 28, 28)),
    "grouped": lambda: nn.Conv2d(64, 128, 3, groups=4).cuda()(zeros(4, 64, 28, 28)),
    "depthwise": lambda: nn.Conv2d(64, 64, 3, groups=64).cuda()(zeros(4, 64, 28, 28)),
    "dilated": lambda: nn.Conv2d(64, 64, 3, dilation=2).cuda()(zeros(4, 64, 28, 28)),
    "channels last": lambda: nn.Conv2d(64, 64, 3).cuda().to(memory_format=torch.channels_last)(zeros(4, 64, 28, 28)),
    "bfloat16": lambda: nn.Conv2d(64, 64, 3).cuda().bfloat16()(zeros(4, 64, 28, 28, dtype=torch.bfloat16)),
    "double": lambda: nn.Conv2d(8, 8, 3).cuda().double()(zeros(4, 8, 28, 28, dtype=torch.double)),
    "LSTM": lambda: nn.LSTM(32, 64, 2, proj_size=16, dropout=0.1).cuda()(zeros(20, 4, 32))[0],
    "GRU": lambda: nn.GRU(32, 64, bidirectional=True).cuda()(zeros(20, 4, 32))[0],
    "batch norm": lambda: nn.BatchNorm2d(64).cuda()(zeros(4, 64, 28, 28)),
    "grid sampler": lambda: F.grid_sample(zeros(2, 3, 8, 8), zeros(2, 4, 4, 2), align_corners=True),
    "attention": lambda: F.scaled_dot_product_attention(*[zeros(2, 4, 128, 64, dtype=torch.half)] * 3),
}
failed = {}
for name, kind in kinds.items():
    try:
        kind().sum().backward()
    except RuntimeError as error:
        failed[name] = str(error)
answer(failed=failed, remarks=phantom.remarks())
"""
    )
    assert not result.failed
    assert not result.remarks


def test_a_recurrent_network_has_the_sizes_of_the_card(on_phantom: Server) -> None:
    result = on_phantom(
        LENT + "net = nn.LSTM(512, 1024, 2, batch_first=True, dropout=0.1).cuda()\n"
        "net(zeros(64, 128, 512))[0].sum().backward()\n"
        "answer(bytes=[entry.bytes for entry in lent()], remarks=phantom.remarks())"
    )
    assert result.bytes == [298844928] * 3
    assert not result.remarks


def test_choosing_plans_by_time_is_remarked_upon(on_phantom: Server) -> None:
    result = on_phantom(
        LENT + "torch.backends.cudnn.benchmark = True\n"
        "nn.Conv2d(64, 128, 3, 2, 1).cuda()(zeros(8, 64, 56, 56))\n"
        "answer(remarks=phantom.remarks())"
    )
    assert any("cudnn.benchmark" in remark for remark in result.remarks)


def test_another_layout_is_foreseen_as_it_turns_out_on_such_a_card(on_phantom: Server) -> None:
    """The size foreseen for 11 GPCs of 12 is what a card with that layout takes, and no other layout's."""
    usual, other = "18,18,18,18,18,16,16,10", ",".join(["12"] * 11)
    program = (
        LENT + "nn.Conv2d(128, 128, 3, 2, 1, bias=False).cuda()(zeros(32, 128, 56, 56))\n"
        "answer(bytes=lent()[0].bytes, alternatives=list(lent()[0].alternative_bytes))"
    )
    foreseen = on_phantom(program, env={"HOTBED_PHANTOM_GPU": f"gpc={usual}|{other}"})
    there = on_phantom(program, env={"HOTBED_PHANTOM_GPU": f"gpc={other}"})
    assert foreseen.bytes == 64815120
    assert foreseen.alternatives[0] == there.bytes != foreseen.bytes
    assert foreseen.alternatives[1:] == [foreseen.bytes] * 2


def test_a_description_without_a_layout_says_so(on_phantom: Server) -> None:
    result = on_phantom(
        LENT + "nn.Conv2d(64, 64, 3).cuda()(zeros(4, 64, 28, 28))\nanswer(remarks=phantom.remarks())",
        env={"HOTBED_PHANTOM_GPU": "name=Some Hopper;sm=114;cc=90"},
    )
    assert any("GPC" in remark for remark in result.remarks)


def test_cards_before_hopper_need_no_layout(on_phantom: Server) -> None:
    result = on_phantom(
        LENT + "nn.Conv2d(64, 64, 3).cuda()(zeros(4, 64, 28, 28))\nanswer(remarks=phantom.remarks())",
        env={"HOTBED_PHANTOM_GPU": "name=NVIDIA A100-SXM4-80GB;sm=108;cc=80;smem_optin=166912;l2=41943040"},
    )
    assert not result.remarks
