"""`hotbed gpus` and the refusals of `hotbed calibrate`, as typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import PlatformError
from hotbed.gpu import find_gpu
from hotbed.gpu.driver_costs import read_calibration
from hotbed.phantom import environment
from hotbed.units import MIB

if TYPE_CHECKING:
    from pathlib import Path


def hotbed(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `hotbed ARGS` in a process of its own."""
    command = [sys.executable, "-m", "hotbed", *args]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=60)


def test_gpus_lists_the_catalogue_with_unknown_values_as_na() -> None:
    result = hotbed("gpus")
    assert result.returncode == 0
    h200 = next(line for line in result.stdout.splitlines() if " h200 " in line)
    t4 = next(line for line in result.stdout.splitlines() if " t4 " in line)
    assert "139.80 GiB" in h200
    assert "518 MiB" in h200
    assert t4.rstrip().endswith("N/A")


def test_gpus_name_shows_the_source_of_every_figure() -> None:
    result = hotbed("gpus", "h100-80G")
    assert "NVIDIA H100 80GB HBM3" in result.stdout
    assert "85017755648" in result.stdout
    assert "CUDA C++ Programming Guide" in result.stdout
    assert "unknown" in next(line for line in result.stdout.splitlines() if "context_bytes" in line)


def test_gpus_json_gives_value_kind_and_source_or_null() -> None:
    result = hotbed("gpus", "h200", "--json")
    found = json.loads(result.stdout)
    figures = found["figures"]
    assert (found["schema"], found["slug"]) == (1, "h200")
    assert figures["total_bytes"]["value"] == 150109880320
    assert figures["total_bytes"]["kind"] == "measured"
    listed = json.loads(hotbed("gpus", "--json").stdout)["gpus"]
    t4 = next(gpu for gpu in listed if gpu["slug"] == "t4")
    assert t4["figures"]["context_bytes"] is None


def test_an_unknown_gpu_is_a_usage_error_with_a_suggestion() -> None:
    result = hotbed("gpus", "a100")
    assert result.returncode == 2
    assert result.stdout == ""
    assert "hint: did you mean a100-40" in result.stderr


def test_calibrate_refuses_a_phantom_before_it_measures() -> None:
    result = hotbed("calibrate", HOTBED_PHANTOM="1")
    assert result.returncode == 2
    assert "phantom" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def phantom() -> dict[str, str]:
    """The environment in which a child process sees one phantom H200."""
    try:
        return environment(find_gpu("h200"), context=True)
    except PlatformError as error:
        pytest.skip(error.message)


def test_calibrate_reads_the_phantom_as_it_would_a_card(phantom: dict[str, str], tmp_path: Path) -> None:
    """Figures of the shared H200; only the times mean nothing on a phantom."""
    path = tmp_path / "h200.toml"
    result = hotbed("calibrate", "--quick", "--allow-phantom", "--json", "--out", str(path), **phantom)
    assert result.returncode == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["device"]["total_bytes"] == 150109880320
    assert printed["device"]["sm_count"] == 132
    assert printed["context"]["context_bytes"] == 518 * MIB
    assert printed["address_reserve"]["size_bytes"] == pytest.approx(1.125 * 150109880320, rel=0.001)
    assert read_calibration(path).gpu_name == "NVIDIA H200"
    assert str(path) in result.stderr


def test_calibrate_does_not_replace_a_file_unasked(phantom: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "h200.toml"
    path.write_text("mine")
    result = hotbed("calibrate", "--quick", "--allow-phantom", "--out", str(path), **phantom)
    assert result.returncode == 2
    assert "--force" in result.stderr
    assert path.read_text() == "mine"
