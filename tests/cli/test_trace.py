"""`hotbed trace show|convert|check`, as typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TRACE = "h200/leak.frames.pickle.xz"


def trace(*args: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs `hotbed trace ARGS` in a process of its own, which must end with `code`."""
    command = [sys.executable, "-m", "hotbed", "trace", *map(str, args)]
    env = os.environ | {"PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        command, capture_output=True, text=True, env=env, check=False, timeout=60, encoding="utf-8"
    )
    assert result.returncode == code, result.stderr
    return result


def test_show_says_what_a_trace_is(data: Path) -> None:
    lines = trace("show", data / TRACE).stdout.splitlines()
    assert any(line.split() == ["call", "stacks", "7"] for line in lines)
    assert any(line.startswith("peak reserved") and "(" in line for line in lines)
    assert any("█" in line for line in lines)


def test_show_as_json_for_one_device(data: Path) -> None:
    found = json.loads(trace("show", data / "made/every_kind.pickle", "--device", "1", "--json").stdout)
    assert (found["schema"], found["device"], found["other_devices"], found["events"]) == (1, 1, [0], 2)
    assert found["peak_reserved"] == {"size_bytes": 2097152, "event": 0, "time_us": 0}


def test_convert_writes_once_and_check_agrees(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.hbt"
    done = trace("convert", data / TRACE, target)
    assert done.stdout == ""
    assert "400 events" in done.stderr
    refused = trace("convert", data / TRACE, target, code=2)
    assert f"{target} exists" in refused.stderr
    assert "--force" in refused.stderr
    trace("convert", "--force", data / TRACE, target)
    assert trace("check", target).stdout == ""


def test_check_has_a_line_for_each_problem_and_status_1(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.hbt"
    trace("convert", data / TRACE, target)
    target.write_bytes(target.read_bytes()[:-20])
    told = trace("check", target, code=1)
    assert told.stdout.splitlines()[0].endswith("are left out: the file ends inside a chunk")
    assert json.loads(trace("check", target, "--json", code=1).stdout)["counts"]["file"] == 1


def test_errors_name_the_file_and_help(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    told = trace("show", path, code=1).stderr.splitlines()
    assert told[0].startswith(f"error: {path}: ")
    assert told[1].startswith("hint: ")
    assert "No such file" in trace("show", tmp_path / "absent", code=1).stderr
