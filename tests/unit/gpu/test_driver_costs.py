"""Costs of driver calls: which calibration wins, what a line of base and slope gives, and bad files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import HotbedError
from hotbed.gpu import CallCost, costs_for, driver_costs, find_gpu
from hotbed.gpu.driver_costs import CALLS
from hotbed.gpu.tables import read_table
from hotbed.units import MIB


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty configuration folder, so that no calibration of this machine is read."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "hotbed" / "calibrations"


def calibration(gpu_name: str, base_us: float) -> str:
    rows = [f'{call} = {{ base_us = {base_us}, us_per_mib = 0.5, kind = "measured" }}' for call in CALLS]
    return f'schema = 1\ngpu = "{gpu_name}"\nsource = "made for a test"\n[calls]\n' + "\n".join(rows)


def test_cost_of_many_calls_is_a_base_each_and_a_slope_over_all_bytes() -> None:
    cost = CallCost(base_us=30.0, us_per_mib=0.25)
    assert cost.us(64 * MIB) == 46.0
    assert cost.us(100 * 20 * MIB, calls=100) == 3000.0 + 500.0


def test_shipped_h200_costs_agree_with_the_pair_measured_apart() -> None:
    """Source: ground truth, another run on an H200: a cudaMalloc and its cudaFree took 60 us, 94 us at 64 MiB."""
    costs = costs_for(find_gpu("h200"))
    assert not costs.is_substitute
    assert costs.assumed == ()
    pair = [costs.cuda_malloc.us(size) + costs.cuda_free.us(size) for size in (2 * MIB, 64 * MIB)]
    assert pair == pytest.approx([60, 94], rel=0.25)


@pytest.mark.parametrize(("pages", "size_mib"), [(4, 80), (16, 320)])
def test_opening_many_pages_at_once_costs_as_for_each(pages: int, size_mib: int) -> None:
    """Source: the samples of the shipped calibration, which are not part of the fit: one call over many 20 MiB pages."""
    shipped = Path(driver_costs.__file__).with_name("calibrations") / "h200.toml"
    samples = read_table(shipped)["samples"]["rows"]
    (seen,) = (row for row in samples if row["mode"] == "grouped" and row["size_mib"] == size_mib)
    predicted = costs_for(find_gpu("h200")).set_access.us(size_mib * MIB, calls=pages)
    assert predicted == pytest.approx(seen["median_us"], rel=0.25)


def test_a_gpu_without_calibration_gets_the_h200_figures_and_says_so() -> None:
    costs = costs_for(find_gpu("t4"))
    assert costs.is_substitute
    assert costs.gpu_name == "NVIDIA H200"
    assert "Tesla T4 is not calibrated" in costs.source


def test_the_users_own_calibration_wins(own_folder: Path) -> None:
    own_folder.mkdir(parents=True)
    (own_folder / "mine.toml").write_text(calibration("NVIDIA H200", 11.0))
    costs = costs_for(find_gpu("h200"))
    assert costs.mem_map == CallCost(11.0, 0.5, "measured")
    assert costs.source == "made for a test"
    assert costs.assumed == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("schema = 1\ngpu = ", "not valid TOML"),
        ("schema = 99\n", "schema 99, expected 1"),
        ('schema = 1\ngpu = "NVIDIA H200"\nsource = "x"\n[calls]\n', "is not a calibration"),
    ],
)
def test_a_broken_file_is_named_not_ignored(own_folder: Path, text: str, complaint: str) -> None:
    own_folder.mkdir(parents=True)
    (own_folder / "bad.toml").write_text(text)
    with pytest.raises(HotbedError, match=r"bad\.toml") as refusal:
        costs_for(find_gpu("h200"))
    assert complaint in refusal.value.message


def test_a_user_without_a_home_gets_the_shipped_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """`docker run --user 12345`: no HOME, and no entry in /etc/passwd."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert costs_for(find_gpu("h200")).gpu_name == "NVIDIA H200"
