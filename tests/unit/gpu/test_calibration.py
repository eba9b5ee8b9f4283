"""Calibration files: what is written can be read back, nothing is overwritten or left half-written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotbed.errors import HotbedError, UsageError
from hotbed.gpu import CallCost, Layout, Source, find_gpu
from hotbed.gpu.calibration import Origin, as_table, default_name, load_gpu, write
from hotbed.gpu.clusters import Clusters
from hotbed.gpu.driver_costs import CALLS, read_calibration
from hotbed.gpu.growth import Growth
from hotbed.gpu.measuring import ContextCost, Measurement, Sample
from hotbed.units import GIB, MIB

ORIGIN = Origin("2026-01-31", "hotbed calibrate", "0.1.0", "3.12.3", "580.159.04", None)


MEASURED = Measurement(
    name="NVIDIA H200",
    total_bytes=150109880320,
    nvml_total_bytes=None,
    cuda_version=(13, 0),
    allocation_call="cudaMalloc",
    figures={"sm_count": 132},
    context=ContextCost(None, "NVML does not know this GPU", None),
    reserve_bytes=1 << 37,
    reserve_us=7.5,
    overhead_us=0.4,
    costs={call: CallCost(10.0 + position, 0.125) for position, call in enumerate(CALLS)},
    samples=(Sample("cuda_malloc", "burst", 20, 31.5, 40.25, 60),),
)


@pytest.fixture
def table() -> dict[str, Any]:
    return as_table(MEASURED, ORIGIN)


def test_a_written_calibration_gives_the_measured_costs(table: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "h200.toml"
    write(table, path)
    costs = read_calibration(path)
    assert costs.gpu_name == "NVIDIA H200"
    assert costs.source == "one NVIDIA H200, driver 580.159.04, measured 2026-01-31 by hotbed calibrate"
    assert costs.mem_create == CallCost(12.0, 0.125, "measured")
    assert costs.assumed == ()


def test_what_nobody_knows_is_left_out_of_the_file(table: dict[str, Any], tmp_path: Path) -> None:
    write(table, tmp_path / "c.toml")
    text = (tmp_path / "c.toml").read_text()
    assert "nvml_total_bytes" not in text
    assert "context_bytes" not in text
    assert "NVML does not know this GPU" in text
    assert text.count("median_us") == 2  # one sample, one reservation


def test_an_existing_file_stays_unless_forced(table: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        write(table, path)
    assert path.read_text() == "mine"
    write(table, path, force=True)
    assert read_calibration(path).gpu_name == "NVIDIA H200"


def test_a_failed_write_leaves_nothing_behind(
    table: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hotbed.gpu.calibration._toml", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write(table, tmp_path / "c.toml")
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_named_after_the_gpu() -> None:
    assert default_name("NVIDIA H200") == "h200.toml"
    assert default_name("NVIDIA H20 96GB") == "nvidia-h20-96gb.toml"


def test_a_card_of_a_calibration_file_has_its_own_figures(table: dict[str, Any], tmp_path: Path) -> None:
    clusters = Clusters((132, 66), (18, 18, 16, 16, 16, 16, 16, 8, 2, 2, 2, 2))
    added = (("kernels", 94 * MIB), ("cublas", 66 * MIB))
    growth = Growth("2.11.0", 91900, 520 * MIB, added, (), {"failed": "no cuDNN"})
    measured = Measurement(**{**vars(MEASURED), "total_bytes": 150 * GIB})
    path = tmp_path / "card.toml"
    write(as_table(measured, ORIGIN, clusters, growth), path)
    gpu = load_gpu(path)
    assert (gpu.slug, gpu.total_bytes) == ("h200", 150 * GIB)
    assert gpu.layouts == (Layout((18, 18, 16, 16, 16, 16, 16, 8, 2, 2, 2, 2), (132, 66)),)
    assert gpu.growth is not None
    assert gpu.growth.added_by("cublas") == 66 * MIB
    assert gpu.growth.card == "NVIDIA H200"
    assert gpu.source_of("total_bytes") == Source("measured", table["source"])
    assert gpu.l2_bytes == 62914560  # not measured in this file: the catalogue's


def test_the_layout_that_cudnn_measured_goes_before_the_one_seen(tmp_path: Path) -> None:
    by_cudnn = {"version": 91900, "json": "{}", "sms_per_gpc": (70, 62), "active_clusters": (132, 66)}
    growth = Growth("2.11.0", 91900, 0, (), (), by_cudnn)
    layout = as_table(MEASURED, ORIGIN, Clusters((132, 65), (66, 66)), growth)["layout"]
    assert layout["sms_per_gpc"] == [70, 62]
    assert layout["active_clusters"] == [132, 66]
    assert "clusters ran in [66, 66]" in layout["method"]


def test_a_layout_that_does_not_fill_the_card_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_text('schema = 1\ngpu = "h200"\nsource = "me"\n[layout]\nsms_per_gpc = [18, 18]\n')
    with pytest.raises(HotbedError, match="36 of 132"):
        load_gpu(path)


def test_the_fitted_layout_of_the_benchmarks_is_an_h200() -> None:
    gpu = load_gpu(Path(__file__).parents[3] / "benchmarks" / "layouts" / "h200-18x5-16-16-10.toml")
    assert gpu == replace(find_gpu("h200"), layouts=(Layout((18, 18, 18, 18, 18, 16, 16, 10)),))
    assert gpu.growth is None
