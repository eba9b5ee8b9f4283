"""hotbed.toml: discovery, values, and every mistake with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.settings.toml import (
    MemorySection,
    NeedsSection,
    PoolSection,
    RunSection,
    TomlError,
    find_file,
    load,
)

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.settings.toml import HotbedToml

WHOLE = """\
schema = 1

[memory]
settings = "expandable_segments:True"
cap_bytes = "15GiB"

[memory."NVIDIA H200"]
settings = "max_split_size_mb:256"
backend = "native"

[needs]
gpu = "NVIDIA H200"
nproc = 8
nnodes = 2
device_used_bytes = 17_179_869_184
host_bytes = "64 GiB"
made_by = "hotbed fit 0.1.0"

[run]
tf32 = true
cudnn_benchmark = false
omp = "auto"
nccl = { NCCL_DEBUG = "WARN", NCCL_IB_HCA = 2 }
grow_bytes = 1024

[pool]
preload = ["torchvision", "timm"]
recipe = "warm.py"
exit = "early"
autostart = true
idle = "20m"
budget = "2GiB"

[image]
base.name = "debian"

[tenants.alice]
share = 0.5
"""


def read(folder: Path, text: str) -> HotbedToml:
    path = folder / "hotbed.toml"
    path.write_text(text)
    return load(path)


def problems(folder: Path, text: str) -> list[tuple[int | None, str, str | None]]:
    with pytest.raises(TomlError) as caught:
        read(folder, text)
    return [(problem.line, problem.message, problem.hint) for problem in caught.value.problems]


def test_reads_every_section(tmp_path: Path) -> None:
    file = read(tmp_path, WHOLE)
    assert file.memory == MemorySection(settings="expandable_segments:True", cap_bytes=15 << 30)
    assert file.needs == NeedsSection(
        gpu="NVIDIA H200",
        nproc=8,
        nnodes=2,
        device_used_bytes=16 << 30,
        host_bytes=64 << 30,
        made_by="hotbed fit 0.1.0",
    )
    nccl = (("NCCL_DEBUG", "WARN"), ("NCCL_IB_HCA", "2"))
    assert file.run == RunSection(tf32=True, cudnn_benchmark=False, omp="auto", nccl=nccl, grow_bytes=1024)
    assert file.pool == PoolSection(
        preload=("torchvision", "timm"),
        recipe="warm.py",
        exit="early",
        autostart=True,
        idle_s=1200.0,
        budget_bytes=2 << 30,
    )
    assert file.image == {"base": {"name": "debian"}}
    assert file.tenants == {"alice": {"share": 0.5}}


def test_a_file_may_be_nearly_empty(tmp_path: Path) -> None:
    file = read(tmp_path, "schema = 1\n")
    assert (file.memory, file.run, file.pool.autostart) == (MemorySection(), RunSection(), False)
    assert file.memory.allocator_settings().to_string() == ""


@pytest.mark.parametrize("name", ["NVIDIA H200", "nvidia h200", "H200"])
def test_a_gpu_has_its_own_table_used_whole(tmp_path: Path, name: str) -> None:
    file = read(tmp_path, WHOLE)
    assert file.memory_for(name) == MemorySection(settings="max_split_size_mb:256", backend="native")
    assert file.memory_for("NVIDIA H200 NVL") == file.memory
    assert file.memory_for(None) == file.memory


def test_backend_completes_the_settings(tmp_path: Path) -> None:
    file = read(tmp_path, 'schema = 1\n[memory]\nbackend = "cudaMallocAsync"\n')
    assert file.memory.allocator_settings().to_string() == "backend:cudaMallocAsync"


def test_every_mistake_is_reported_with_its_line(tmp_path: Path) -> None:
    text = """\
schema = 1
[memory]
setings = "expandable_segments:True"
cap_bytes = -3

[memory."NVIDIA H200"]
settings = "expandable_segments:true"
[pool]
preload = [
  "torchvision",
  3,
]
idle = "soon"
[runs]
omp = 0
"""
    found = problems(tmp_path, text)
    assert [line for line, _, _ in found] == [3, 4, 7, 9, 13, 14]
    messages = [message for _, message, _ in found]
    assert messages[0] == "'setings' is no key of [memory]"
    assert found[0][2] == "did you mean settings?"
    assert messages[1] == 'cap_bytes must be a number of bytes or text like "15GiB"'
    assert "found 'true'" in messages[2]
    assert messages[5] == "'runs' is no section of hotbed.toml"
    assert found[5][2] == "did you mean run?"


def test_the_error_shows_path_and_line_for_each_mistake(tmp_path: Path) -> None:
    with pytest.raises(TomlError) as caught:
        read(tmp_path, "schema = 1\n[run]\nomp = 0\ntf32 = 1\n")
    path = tmp_path / "hotbed.toml"
    assert caught.value.message.splitlines() == [
        f'{path}:3: omp must be "auto" or a number of threads',
        f"{path}:4: tf32 must be true or false",
    ]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", None, "has no schema"),
        ("schema = 2\n", 1, "schema 2 is not known"),
        ("schema = true\n", 1, "schema True is not known"),
        ('schema = 1\nrun = "fast"\n', 2, "run must be a table"),
        ("schema = 1\n[run]\nnccl = { OMP_NUM_THREADS = 1 }\n", 3, "does not start with NCCL_"),
        ("schema = 1\n[run]\nnccl = { NCCL_DEBUG = true }\n", 3, "must be text or a number"),
        (
            'schema = 1\n[memory]\nsettings = "backend:native"\nbackend = "cudaMallocAsync"\n',
            4,
            "settings say",
        ),
        ('schema = 1\n[memory."H200"]\n[memory."nvidia h200"]\n', 3, "the same GPU"),
        ('schema = 1\n[memory."H200"]\nx = 1\n', 3, "no key of [memory.H200]"),
        ("schema = 1\n[memory]\n[run]\n[memory.T4]\nx = 1\n", 5, "no key of [memory.T4]"),
        ("schema = 1\nmemory = { settings = 1 }\n", 2, "settings must be"),
        ("schema = 1\nmemory.x = 1\n", 2, "no key of [memory]"),
        ("schema = 1\n[foo.bar]\nx = 1\n", 2, "'foo' is no section"),
        ("schema = 1\n[pool]\nexit = 'late'\n", 3, 'must be "strict" or "early"'),
        ("schema = 1\n[needs]\nnproc = true\n", 3, "at least 1"),
        ("schema = 1\n[run\n", 2, "is not valid TOML"),
        ("schema = 1\nschema = 1\n", 2, "is not valid TOML"),
    ],
)
def test_one_mistake_one_line(tmp_path: Path, text: str, line: int | None, part: str) -> None:
    ((found, message, _),) = problems(tmp_path, text)
    assert part in message
    assert found == line


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hotbed.toml"
    path.write_bytes(b"schema = 1 # \xff\n")
    with pytest.raises(TomlError, match="is not UTF-8"):
        load(path)


def test_the_nearest_file_upwards_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "hotbed.toml").write_text("schema = 1\n")
    assert find_file(inner) == tmp_path / "hotbed.toml"
    (tmp_path / "a" / "hotbed.toml").mkdir()
    assert find_file(inner) == tmp_path / "hotbed.toml"
    (inner / "hotbed.toml").write_text("schema = 1\n")
    assert find_file(inner) == inner / "hotbed.toml"
