"""`hotbed report`, as typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TRACE = "h200/leak.frames.pickle.xz"


def report(*args: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs `hotbed report ARGS` in `cwd`, which must end with `code`."""
    command = [sys.executable, "-m", "hotbed", "report", *map(str, args)]
    env = os.environ | {"PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        command, capture_output=True, text=True, env=env, cwd=cwd, check=False, timeout=60, encoding="utf-8"
    )
    assert result.returncode == code, result.stderr
    return result


def test_the_page_stands_beside_its_name_and_the_terminal_says_what_matters(
    data: Path, tmp_path: Path
) -> None:
    lines = report(data / TRACE, cwd=tmp_path).stdout.splitlines()
    assert lines[0] == "leak.frames.pickle.xz.html"
    assert len(lines) > 2
    assert (tmp_path / lines[0]).read_text().startswith("<!DOCTYPE html>")


def test_a_report_is_replaced_and_nothing_else_is(data: Path, tmp_path: Path) -> None:
    report(data / TRACE, "-o", "a.html", cwd=tmp_path)
    report(data / TRACE, "-o", "a.html", cwd=tmp_path)
    (tmp_path / "b.html").write_text("<!DOCTYPE html>mine")
    refused = report(data / TRACE, "-o", "b.html", cwd=tmp_path, code=2)
    assert "b.html exists, and hotbed did not write it" in refused.stderr
    assert "--force" in refused.stderr
    report(data / TRACE, "-o", "b.html", "--force", cwd=tmp_path)


def test_json_gives_the_peaks_that_trace_show_gives(data: Path, tmp_path: Path) -> None:
    found = json.loads(report(data / TRACE, "--json", cwd=tmp_path).stdout)
    shown = subprocess.run(
        [sys.executable, "-m", "hotbed", "trace", "show", str(data / TRACE), "--json"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    overview = json.loads(shown.stdout)
    assert found["schema"] == 1
    assert found["events"] == overview["events"] == 400
    assert found["peaks"]["reserved"] == {
        "bytes": overview["peak_reserved"]["size_bytes"],
        "event": overview["peak_reserved"]["event"],
    }


def test_an_error_text_is_explained_without_a_file(tmp_path: Path) -> None:
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.20 GiB of "
        "which 1.10 GiB is free. Process 11 has 60.00 GiB memory in use. Including non-PyTorch memory, this process has "
        "18.10 GiB memory in use. Of the allocated memory 17.00 GiB is allocated by PyTorch, and 500.00 MiB is reserved "
        "by PyTorch but unallocated."
    )
    told = report("--oom", text, cwd=tmp_path).stdout
    assert told.startswith("PROBLEM  oom/")
    assert "60.0 GiB" in told
    assert list(tmp_path.iterdir()) == []
    report("--oom", "all is well", cwd=tmp_path, code=2)


def test_two_runs_are_compared_at_their_peaks(data: Path, tmp_path: Path) -> None:
    other = data / "made/every_kind.pickle"
    found = json.loads(report(data / TRACE, "--against", other, "--json", cwd=tmp_path).stdout)["difference"]
    assert [side["name"] for side in found["sides"]] == ["every_kind.pickle", "leak.frames.pickle.xz"]
    assert {row["name"] for row in found["rows"] if row["kind"] == "peak"} == {
        "peak allocated",
        "peak reserved",
    }
    report(data / TRACE, "--settings", "", cwd=tmp_path, code=2)
