"""The planted programs are the ones that expected.toml talks about, line for line."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomlkit

FOLDER = Path(__file__).parents[1] / "data" / "planted"
EXPECTED = {
    name: entry
    for name, entry in tomlkit.parse((FOLDER / "expected.toml").read_text()).unwrap().items()
    if name != "schema"
}


def test_each_program_is_described() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_lines_are_where_the_description_says(name: str) -> None:
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    entry = EXPECTED[name]
    assert all(1 <= number <= len(lines) for number in entry["line"])
    if entry["line"]:
        assert lines[entry["line"][0] - 1].strip() == entry["at"]
    else:
        assert entry["class"] == "not-a-leak"


def test_twins_have_descriptions() -> None:
    assert {entry["twin"] for entry in EXPECTED.values() if "twin" in entry} <= set(EXPECTED)
