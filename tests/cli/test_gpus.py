"""`hotbed gpus` and the refusals of `hotbed calibrate`, as typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys


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
    figures = json.loads(result.stdout)["figures"]
    assert figures["total_bytes"]["value"] == 150109880320
    assert figures["total_bytes"]["kind"] == "measured"
    listed = json.loads(hotbed("gpus", "--json").stdout)
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
