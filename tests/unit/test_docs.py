"""The documents against the tree: links lead somewhere, every verb has its page, the folder map is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hotbed.cli.main import VERBS

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert broken == []


def test_every_verb_has_a_page_and_stands_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert sorted(path.stem for path in (ROOT / "docs" / "verbs").glob("*.md")) == sorted(VERBS)
    assert [verb for verb in VERBS if f"(docs/verbs/{verb}.md)" not in readme] == []


def test_the_map_of_folders_names_every_part() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    package = ROOT / "src" / "hotbed"
    parts = [path.name for path in package.iterdir() if (path / "__init__.py").exists()]
    assert [part for part in parts if f"`src/hotbed/{part}/`" not in contributing] == []


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_page_names_every_option_of_its_verb(verb: str) -> None:
    """`--json` and the like are in each page, and no page names an option that is gone."""
    import importlib

    import click

    command = importlib.import_module(VERBS[verb][0]).command
    commands = [command, *getattr(command, "commands", {}).values()]
    options = {
        name
        for one in commands
        for param in one.params
        if isinstance(param, click.Option)
        for name in param.opts
    }
    page = (ROOT / "docs" / "verbs" / f"{verb}.md").read_text()
    assert {option for option in options if option not in page} == set()
