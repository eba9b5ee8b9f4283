"""`hotbed replay`, as typed: figures of a real H200 (tests/data/h200/measured.jsonl), errors, comparisons."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Hotbed

    Replay = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.torch
GIB = 1 << 30


@pytest.fixture(scope="session")
def replay(hotbed_cli: Hotbed) -> Replay:
    def run(*args: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        result = hotbed_cli("replay", *args, code=code, columns=140)
        assert "Traceback" not in result.stderr
        return result

    return run


@pytest.fixture(scope="session")
def one(replay: Replay) -> Callable[..., dict[str, Any]]:
    """The JSON object of a single replay."""

    def run(*args: str | Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(replay(*args, "--json").stdout)
        return found

    return run


def h200(data: Path, name: str, tag: str) -> dict[str, Any]:
    rows = map(json.loads, (data / "h200" / "measured.jsonl").read_text().splitlines())
    return next(row for row in rows if (row["name"], row["tag"]) == (name, tag))


# Rows in which no two equal free blocks compete, so that torch 2.13's new tie order changes nothing.
ROWS = [
    ("leak", "default"),
    ("leak", "round4"),
    ("detection", "default"),
    ("streams", "exp"),
    ("graphs", "default"),
]


@pytest.mark.parametrize(("name", "tag"), ROWS)
def test_figures_are_those_of_the_card(
    one: Callable[..., dict[str, Any]], data: Path, name: str, tag: str
) -> None:
    row = h200(data, name, tag)
    found = one(data / "h200" / f"{name}.record.pickle.xz", "--settings", row["conf"], "--gpu", "h200")
    stats = row["stats"]
    assert found["peak_reserved_bytes"] == stats["reserved_bytes.all.peak"]
    assert found["peak_allocated_bytes"] == stats["allocated_bytes.all.peak"]
    assert found["peak_requested_bytes"] == stats["requested_bytes.all.peak"]
    assert found["device_mallocs"] == stats["num_device_alloc"]
    assert found["out_of_memory"] is False
    assert (found["schema"], found["settings"], found["cap_bytes"]) == (1, row["conf"], None)


def test_running_out_of_memory_is_a_result(one: Callable[..., dict[str, Any]], data: Path) -> None:
    found = one(data / "h200/detection.record.pickle.xz", "--cap", "15GiB")
    assert found["out_of_memory"] is True
    assert found["cap_bytes"] == 15 * GIB
    assert found["peak_reserved_bytes"] <= 15 * GIB
    oom = found["oom"]
    assert 0 < oom["event"] < oom["events"]
    assert oom["reserved_bytes"] == oom["allocated_bytes"] + oom["free_reserved_bytes"]
    # It ends where the memory ends: the failed request does not fit beside what is allocated.
    assert oom["reserved_bytes"] + oom["requested_bytes"] > 15 * GIB


def test_memory_at_the_peak_adds_up(one: Callable[..., dict[str, Any]], data: Path) -> None:
    found = one(data / "h200/detection.record.pickle.xz")["fragmentation"]
    unusable = sum(free["bytes"] for free in found["unusable"])
    assert found["live_requested_bytes"] + found["rounding_bytes"] + unusable == found["reserved_bytes"]


def test_the_timeline_reaches_the_peak(one: Callable[..., dict[str, Any]], data: Path) -> None:
    found = one(data / "h200/leak.record.pickle.xz")
    assert max(found["timeline"]["reserved_bytes"]) == found["peak_reserved_bytes"]
    assert max(found["timeline"]["requested_bytes"]) == found["peak_requested_bytes"]


def test_a_matrix_gives_a_line_each(replay: Replay, data: Path, tmp_path: Path) -> None:
    rows = [
        {"settings": "", "cap_bytes": None},
        {"settings": "expandable_segments:True", "cap_bytes": 15 * GIB},
    ]
    matrix = tmp_path / "rows.jsonl"
    matrix.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = replay(data / "h200/detection.record.pickle.xz", "--matrix", matrix).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(row["settings"], row["cap_bytes"]) for row in found] == [tuple(row.values()) for row in rows]
    assert [row["out_of_memory"] for row in found] == [False, True]


def test_settings_side_by_side(replay: Replay, data: Path) -> None:
    trace = data / "h200/leak.record.pickle.xz"
    text = replay(trace, "--settings", "", "--settings", "max_split_size_mb:32").stdout
    assert "(default)" in text
    assert "max_split_size_mb:32" in text
    assert "326 MiB" in text


def test_stream_ordered_allocation_is_an_estimate(one: Callable[..., dict[str, Any]], data: Path) -> None:
    found = one(data / "h200/leak.record.pickle.xz", "--settings", "backend:cudaMallocAsync")
    assert found["estimate"].startswith("estimate")
    # Within the stated error of the H200's own row.
    truth = h200(data, "leak", "async")["stats"]["reserved_bytes.all.peak"]
    assert abs(found["peak_reserved_bytes"] / truth - 1) < 0.1


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--settings", "max_split_size:128"], 1, "max_split_size_mb"),
        (["--settings", "max_split_size_mb:3"], 1, "max_split_size_mb"),
        (["--cap", "lots"], 2, "15GiB"),
        (["--cap", "999GiB"], 2, "larger --gpu"),
        (["--gpu", "h300"], 2, "h300"),
        (["--torch", "/no/such/python"], 2, "/no/such/python"),
        (["--matrix", "/no/such/file"], 1, "/no/such/file"),
    ],
)
def test_bad_input_is_named_in_one_line(
    replay: Replay, data: Path, args: list[str], code: int, words: str
) -> None:
    result = replay(data / "h200/leak.record.pickle.xz", *args, code=code)
    assert words in result.stderr
    assert result.stdout == ""


def test_a_broken_matrix_line_is_named(replay: Replay, data: Path, tmp_path: Path) -> None:
    matrix = tmp_path / "rows.jsonl"
    matrix.write_text('{"settings": ""}\n{"settings": 3}\n')
    assert "line 2" in replay(data / "h200/leak.record.pickle.xz", "--matrix", matrix, code=2).stderr


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python without torch."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return tmp_path / "bare" / "bin" / "python"


def test_no_torch(replay: Replay, data: Path, bare_python: Path) -> None:
    result = replay(data / "h200/leak.record.pickle.xz", "--torch", bare_python, code=1)
    assert "no torch" in result.stderr
    assert "pip install" in result.stderr


def test_torch_without_cuda(replay: Replay, data: Path, bare_python: Path) -> None:
    site = next(bare_python.parent.parent.glob("lib/python*/site-packages"))
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("__version__ = '2.14.1+cpu'\nclass version: cuda = None\n")
    result = replay(data / "h200/leak.record.pickle.xz", "--torch", bare_python, code=1)
    assert "torch 2.14.1+cpu is built without CUDA" in result.stderr


def test_a_matrix_that_is_no_text_is_one_clear_line(replay: Replay, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xff\xfe")
    result = replay(data / "h200" / "graphs.record.pickle.xz", "--matrix", path, code=2)
    assert f"error: {path} is not UTF-8 text" in result.stderr


def test_a_torch_that_cannot_load_its_libraries_says_why(replay: Replay, data: Path, tmp_path: Path) -> None:
    """torch opens CUDA libraries by itself; without one it raises OSError, no ImportError."""
    (tmp_path / "torch.py").write_text("raise OSError('libcudnn.so.9: cannot open shared object file')")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    result = replay(data / "h200" / "graphs.record.pickle.xz", "--torch", python, code=1)
    assert "libcudnn.so.9: cannot open shared object file" in result.stderr
