"""The public names work whatever was imported before them: no submodule hides a function of the same name."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import hotbed

if TYPE_CHECKING:
    from pathlib import Path

IMPORT_ALL = """
import hotbed, importlib, pkgutil, sys
for module in pkgutil.walk_packages(hotbed.__path__, "hotbed."):
    if module.name != "hotbed.__main__":
        importlib.import_module(module.name)
"""
CALL_EACH = """
trace = hotbed.load_trace(sys.argv[1])
outcome = hotbed.replay(trace)
recommendation = hotbed.tune([trace], goal="speed")
assert outcome.peak_reserved_bytes >= outcome.peak_allocated_bytes > 0
print(type(trace).__name__, type(outcome).__name__, type(recommendation).__name__)
"""


def python(code: str, *arguments: str | Path) -> str:
    """What a new Python prints for `code`."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_submodule_can_be_imported_and_hides_no_public_name() -> None:
    names = python(
        IMPORT_ALL + "print(*[name for name in hotbed.__all__ if callable(getattr(hotbed, name))])"
    )
    assert names.split() == [name for name in hotbed.__all__ if name != "__version__"]


def test_importing_everything_does_not_load_torch() -> None:
    assert python(IMPORT_ALL + "print('torch' in sys.modules)") == "False\n"


@pytest.mark.torch
def test_each_public_name_can_be_called(data: Path) -> None:
    printed = python(IMPORT_ALL + CALL_EACH, data / "h200" / "leak.record.pickle.xz")
    assert printed.split() == ["Trace", "Outcome", "Recommendation"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        hotbed.trian  # noqa: B018
    assert set(hotbed.__all__) <= set(dir(hotbed))
