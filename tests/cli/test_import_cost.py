"""Starting must stay cheap: what a bare import and `--help` may load."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"torch", "numpy", "rich", "tomlkit", "msgspec", "zstandard", "pynvml", "elftools", "asyncio"}


def loaded_by(statement: str) -> set[str]:
    """Top-level modules loaded once `statement` has run in a new Python."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    code = f"try:\n    {statement}\nfinally:\n    {report}"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(result.stderr.split())


def test_importing_hotbed_loads_nothing_heavy() -> None:
    assert loaded_by("import hotbed") & {*HEAVY, "click"} == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    assert loaded_by(f"from hotbed.cli.main import main; main({arguments!r})") & HEAVY == set()


def test_naming_a_gpu_loads_no_torch_and_no_numpy() -> None:
    """Each worker of a replay looks up its GPU."""
    found = loaded_by("from hotbed.gpu import find_gpu, costs_for; costs_for(find_gpu('h200'))")
    assert found & {"torch", "numpy", "rich", "pynvml", "ctypes"} == set()
