"""Edits of hotbed.toml: exact, in place, all or nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from hotbed.errors import HotbedError
from hotbed.settings.toml import (
    MemorySection,
    NeedsSection,
    TomlError,
    editing,
    load,
    write_memory,
    write_needs,
)

if TYPE_CHECKING:
    from pathlib import Path

TUNED = MemorySection(
    settings="max_split_size_mb:256,garbage_collection_threshold:0.8", cap_bytes=16106127360
)
COMMENTED = """\
# Ours.
schema = 1

[memory]  # tuned by hand
# because of fragmentation
settings = "expandable_segments:True"  # since March
backend = "native"

[run]
tf32 = true  # agreed

[memory."NVIDIA T4"]
cap_bytes = "14GiB"

# the end
[image]
base.name = "debian"
"""
FORMS = [
    "schema = 1\n",
    "schema = 1",
    COMMENTED,
    'schema = 1\nmemory = { settings = "backend:native", H200 = { cap_bytes = 3 } }\n\n# tail\n[run]\n',
    'schema = 1\nmemory.settings = "backend:native"\n\n# tail\n[run]\n',
    "schema = 1\n[memory.H200]\ncap_bytes = 3\n\n# tail\n[run]\nomp = 2\n",
    'schema = 1\n[image.x]\n[memory."a.b"]\n[run]\n[memory]\ncap_bytes = 1\n[image.y]\n',
    "schema = 1\r\n[memory]\r\ncap_bytes = 3  # three\r\n",
]
SECTIONS = st.builds(
    MemorySection,
    settings=st.none()
    | st.sampled_from(["", "expandable_segments:True", "roundup_power2_divisions:[256:1,>:4]"]),
    cap_bytes=st.none() | st.integers(1, 2**60),
    backend=st.none() | st.just("native"),
).filter(lambda section: section != MemorySection())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hotbed.toml"


def test_a_missing_file_is_made(path: Path) -> None:
    write_memory(path, TUNED, "NVIDIA H200")
    assert path.read_text() == (
        'schema = 1\n\n[memory."NVIDIA H200"]\n'
        'settings = "max_split_size_mb:256,garbage_collection_threshold:0.8"\ncap_bytes = 16106127360\n'
    )
    assert load(path).memory_for("NVIDIA H200") == TUNED


def test_comments_and_order_stay(path: Path) -> None:
    path.write_text(COMMENTED)
    write_memory(path, TUNED)
    changed = COMMENTED.replace('"expandable_segments:True"', f'"{TUNED.settings}"')
    changed = changed.replace('backend = "native"', f"cap_bytes = {TUNED.cap_bytes}")
    assert path.read_text() == changed


def test_a_new_gpu_leaves_every_old_line(path: Path) -> None:
    path.write_text(COMMENTED)
    write_memory(path, TUNED, "NVIDIA H200")
    text = path.read_text()
    assert [line for line in COMMENTED.splitlines() if line not in text.splitlines()] == []
    assert load(path).memory_for("h200") == TUNED
    assert load(path).memory_for("T4").cap_bytes == 14 << 30


def test_another_spelling_of_a_gpu_is_the_same_table(path: Path) -> None:
    path.write_text(COMMENTED)
    write_memory(path, TUNED, "t4")
    assert load(path).memory_by_gpu == (("NVIDIA T4", TUNED),)


@given(
    form=st.sampled_from(FORMS),
    section=SECTIONS,
    gpu=st.sampled_from([None, "NVIDIA H200", 'odd "name".x', "a.b"]),
)
def test_any_form_of_file_is_edited_exactly(
    tmp_path_factory: pytest.TempPathFactory, form: str, section: MemorySection, gpu: str | None
) -> None:
    path = tmp_path_factory.mktemp("edit") / "hotbed.toml"
    path.write_bytes(form.encode())
    before = load(path)
    write_memory(path, section, gpu)
    after = load(path)
    assert after.memory_for(gpu) == section
    assert (after.run, after.image, after.needs) == (before.run, before.image, before.needs)
    comments = [line for line in form.splitlines() if line.startswith("#")]
    assert [line for line in comments if line not in path.read_text().splitlines()] == []
    untouched = [
        name for name, _ in before.memory_by_gpu if gpu is None or before.memory_for(gpu) is before.memory
    ]
    assert [name for name in untouched if after.memory_for(name) != before.memory_for(name)] == []


def test_needs_are_written_in_place(path: Path) -> None:
    path.write_text(COMMENTED)
    write_needs(path, NeedsSection(gpu="NVIDIA H200", nproc=2))
    write_needs(path, NeedsSection(gpu="NVIDIA H200", nproc=4, made_by="hotbed plan"))
    assert load(path).needs == NeedsSection(gpu="NVIDIA H200", nproc=4, made_by="hotbed plan")
    assert path.read_text().startswith(COMMENTED)


@pytest.mark.parametrize(
    "broken", ["schema = 1\n[memory\n", "schema = 1\n[memory]\nsetings = 1\n", "x = 1\n"]
)
def test_an_invalid_file_is_not_touched(path: Path, broken: str) -> None:
    path.write_text(broken)
    with pytest.raises(TomlError):
        write_memory(path, TUNED)
    assert path.read_text() == broken
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_while_writing_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path.write_text(COMMENTED)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_memory(path, TUNED)
    assert path.read_text() == COMMENTED
    assert list(path.parent.iterdir()) == [path]


def test_an_edit_that_would_change_more_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop_the_rest(document: Any, where: object, section: object) -> None:
        document.remove("run")

    path.write_text(COMMENTED)
    monkeypatch.setattr(editing, "_edit", drop_the_rest)
    with pytest.raises(HotbedError, match="was left as it was"):
        write_memory(path, TUNED)
    assert path.read_text() == COMMENTED


def test_an_empty_section_is_refused(path: Path) -> None:
    path.write_text(COMMENTED)
    with pytest.raises(HotbedError, match="nothing to write"):
        write_memory(path, MemorySection())
    assert path.read_text() == COMMENTED


def test_permissions_and_links_stay(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "real.toml"
    target.write_text("schema = 1\n")
    target.chmod(0o640)
    path.symlink_to(target)
    write_memory(path, TUNED)
    assert path.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert load(target).memory == TUNED


def test_what_is_written_is_toml_for_others_too(path: Path) -> None:
    path.write_text(FORMS[4])
    write_memory(path, TUNED, "H200")
    assert tomlkit.parse(path.read_text()).unwrap()["memory"]["H200"]["cap_bytes"] == TUNED.cap_bytes
