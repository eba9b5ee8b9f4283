"""The published JSON Schema and reference page agree with what is read."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from hotbed.settings.toml.model import SECTIONS, MemorySection, keys_of
from hotbed.settings.toml.schema import json_schema

ROOT = Path(__file__).parents[3]


def test_published_files_are_current() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "toml_schema.py"), "--check"]
    result = subprocess.run(tool, capture_output=True, text=True, check=False, timeout=60)
    assert (result.stdout.strip(), result.returncode) == ("", 0)


def test_the_published_schema_is_json() -> None:
    assert json.loads((ROOT / "docs" / "hotbed.schema.json").read_text()) == json_schema()


@pytest.mark.parametrize("name", SECTIONS)
def test_every_key_of_a_section_is_in_the_schema_and_nothing_else_is_allowed(name: str) -> None:
    section = json_schema()["properties"][name]
    keys = keys_of(SECTIONS[name])
    assert list(section["properties"]) == [key.name for key in keys]
    assert [key.field for key in keys] == [item.name for item in fields(SECTIONS[name])]
    assert section["additionalProperties"] is (False if name != "memory" else section["additionalProperties"])


def test_under_memory_only_gpu_tables_may_have_other_names() -> None:
    gpu = json_schema()["properties"]["memory"]["additionalProperties"]
    assert gpu["type"] == "object"
    assert list(gpu["properties"]) == [key.name for key in keys_of(MemorySection)]
    assert gpu["additionalProperties"] is False
