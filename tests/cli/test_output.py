"""Output that nobody reads, that does not fit or that cannot be spelled: one line at the most, and the right status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOTBED = [sys.executable, "-m", "hotbed"]
VERBS = [["--help"], ["gpus"], ["gpus", "--json"], ["settings", "check", "max_split_size_mb:128"]]
FULL = Path("/dev/full")


def run(arguments: list[str], **popen: object) -> subprocess.CompletedProcess[str]:
    """Runs `hotbed ARGUMENTS` in a process of its own, stderr kept."""
    return subprocess.run(
        [*HOTBED, *arguments], stderr=subprocess.PIPE, text=True, check=False, timeout=60, **popen
    )  # type: ignore[call-overload]


@pytest.mark.parametrize("arguments", VERBS, ids=" ".join)
def test_a_reader_that_went_away_is_no_failure(arguments: list[str]) -> None:
    """As in `hotbed gpus | head -1`: 1 would mean "the answer is no"."""
    reader, writer = os.pipe()
    os.close(reader)
    result = run(arguments, stdout=writer)
    os.close(writer)
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    assert "Broken pipe" not in result.stderr


@pytest.mark.skipif(not FULL.is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", VERBS, ids=" ".join)
def test_a_full_disk_is_one_line_and_status_1(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        result = run(arguments, stdout=full)
    assert result.returncode == 1
    errors = [
        line for line in result.stderr.splitlines() if line.startswith(("error", "Exception", "Traceback"))
    ]
    assert errors == ["error: No space left on device"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_closed_streams_do_no_harm(closed: str) -> None:
    shell = f'"$0" -m hotbed gpus h200 {closed}'
    result = subprocess.run(
        ["sh", "-c", shell, sys.executable], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0
    assert "Traceback" not in result.stderr


def test_what_the_terminal_cannot_spell_is_escaped() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = run(["settings", "check", "max_split_size_mb:128"], stdout=subprocess.PIPE, env=environment)
    assert result.returncode == 0
    assert "\\u2192 choose it by measurement" in result.stdout


def test_a_file_name_that_is_no_text_can_be_read_and_named(data: Path, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.xz"
    Path(os.fsdecode(path)).write_bytes((data / "h200" / "graphs.record.pickle.xz").read_bytes())
    environment = {**os.environ, "PYTHONUTF8": "1"}
    for arguments in (["trace", "show"], ["trace", "check"]):
        result = run([*arguments, os.fsdecode(path)], stdout=subprocess.PIPE, env=environment)
        assert result.returncode == 0, result.stderr
        assert "\\udcff.xz" in "".join((result.stdout + result.stderr).split())


def test_a_fault_of_ours_says_so_and_has_status_2() -> None:
    code = (
        "import hotbed.cli.gpus as verb, hotbed.cli.main as main\n"
        "verb.command.callback = lambda **_: 1 / 0\n"
        "main.main(['gpus'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 2
    assert "ZeroDivisionError" in result.stderr
    assert "error: this is a fault in hotbed" in result.stderr
