"""`hotbed findings`: text, JSON and exit status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from hotbed.cli.findings import command
from hotbed.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_problems_come_first_and_make_the_status_one(data: Path) -> None:
    result = CliRunner().invoke(
        command, [str(data / "h200/token_budget.record.pickle.xz")], standalone_mode=False
    )
    assert result.return_value == 1
    assert result.output.startswith("PROBLEM  fragmentation/sizes   5.4 GiB")
    assert "to act on" in result.output.splitlines()[-1]


def test_json_holds_what_the_page_says(data: Path) -> None:
    path = str(data / "h200/bert_large.record.pickle.xz")
    result = CliRunner().invoke(command, [path, "--json"], standalone_mode=False)
    assert result.return_value == 0
    answer = json.loads(result.output)
    assert (answer["schema"], answer["source"]) == (1, [path])
    assert {finding["severity"] for finding in answer["findings"]} <= {"notice", "fine"}


def test_only_picks_groups(data: Path) -> None:
    path = str(data / "h200/resnet50.frames.pickle.xz")
    result = CliRunner().invoke(command, [path, "--json", "--only", "peak"], standalone_mode=False)
    (finding,) = json.loads(result.output)["findings"]
    assert finding["code"] == "peak/composition"
    assert finding["where"] == {"filename": "workloads.py", "line": 55, "name": "resnet50"}


def test_an_unknown_group_is_refused_with_those_there_are(data: Path) -> None:
    path = str(data / "h200/leak.record.pickle.xz")
    result = CliRunner().invoke(command, [path, "--only", "peeks"], standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert "fragmentation" in str(result.exception.hint)


@pytest.mark.parametrize("text", ["", "not a pickle"])
def test_files_that_are_no_traces_are_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.pickle"
    path.write_text(text)
    result = CliRunner().invoke(command, [str(path)], standalone_mode=False)
    assert type(result.exception).__name__ == "TraceError"


OOM = "CUDA out of memory. Tried to allocate 2.87 GiB (GPU 1; 14.76 GiB total capacity; 8.77 GiB already allocated; 19.75 MiB free; 13.71 GiB reserved in total by PyTorch)"  # fmt: skip


@pytest.mark.parametrize("arguments", [["--oom", OOM], ["--oom", "-"]])
def test_an_error_message_is_explained(arguments: list[str]) -> None:
    result = CliRunner().invoke(command, [*arguments, "--json"], input=OOM, standalone_mode=False)
    assert result.return_value == 1
    (finding,) = json.loads(result.output)["findings"]
    assert (finding["code"], finding["device"]) == ("oom/fragmentation", 1)


@pytest.mark.parametrize("arguments", [[], ["x.pickle", "--oom", OOM]])
def test_a_trace_or_a_message_not_both(arguments: list[str]) -> None:
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert isinstance(result.exception, UsageError)
