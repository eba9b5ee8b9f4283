"""SMs per GPC from where clusters ran, against what cuDNN itself measured on the same H200."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hotbed.gpu.clusters import group_sizes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def card(data: Path) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads((data / "h200" / "clusters.json").read_text())
    return seen


def test_one_launch_of_each_size_gives_the_gpcs_that_cudnn_measured(card: dict[str, Any]) -> None:
    clusters = [sms for launch in card["placed"] for sms in launch]
    sizes = group_sizes(clusters, 132)
    assert sizes == tuple(card["sms_per_gpc_by_cudnn"])
    # Which also is what the driver's occupancy call goes by.
    assert [sum(sms // size for sms in sizes) for size in range(1, 17)] == card["active_clusters"]


def test_multiprocessors_that_nothing_ran_on_make_the_layout_unknown(card: dict[str, Any]) -> None:
    clusters = [sms for launch in card["placed"][1:] for sms in launch if 130 not in sms]
    assert group_sizes(clusters, 132) == ()
    # A phantom writes nothing: every block claims the same multiprocessor.
    assert group_sizes([[0xFFFFFFFF] * 16], 132) == ()
