"""Calibration files: what is written can be read back, nothing is overwritten or left half-written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hotbed.errors import UsageError
from hotbed.gpu import CallCost
from hotbed.gpu.calibration import Origin, as_table, default_name, write
from hotbed.gpu.driver_costs import CALLS, read_calibration
from hotbed.gpu.measuring import ContextCost, Measurement, Sample

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = Origin("2026-01-31", "hotbed calibrate", "0.1.0", "3.12.3", "580.159.04", None)


@pytest.fixture
def table() -> dict[str, Any]:
    measured = Measurement(
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
    return as_table(measured, ORIGIN)


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
