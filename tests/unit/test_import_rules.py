"""The linter rule on who may import whom: kept now, and able to see a breach."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tomlkit

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture
def linter() -> ModuleType:
    """tools/import_rules.py as a module."""
    spec = importlib.util.spec_from_file_location("import_rules", ROOT / "tools" / "import_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_import_is_allowed(linter: ModuleType) -> None:
    rules = tomlkit.parse((ROOT / "pyproject.toml").read_text()).unwrap()["tool"]["hotbed"]["imports"]
    assert linter.violations(rules) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from hotbed.trace.model import Trace",
        "from hotbed import trace",
        "import hotbed.trace.model",
        "def later():\n    from hotbed.trace import load_trace",
    ],
)
def test_a_forbidden_import_is_seen_wherever_it_stands(
    linter: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "model.py").write_text(
        f"import json\nfrom hotbed.errors import HotbedError\n{statement}\n"
    )
    monkeypatch.setattr(linter, "PACKAGE", tmp_path)
    (line,) = linter.violations({"gpu": ["errors", "units"]})
    assert "gpu may not import hotbed.trace" in line


def test_a_part_without_a_rule_is_refused(
    linter: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "newcomer.py").write_text("")
    monkeypatch.setattr(linter, "PACKAGE", tmp_path)
    (line,) = linter.violations({})
    assert "part 'newcomer' has no line" in line
