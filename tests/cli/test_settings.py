"""`hotbed settings check`, as typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING")


def check(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `hotbed settings check ARGS` in a process of its own."""
    command = [sys.executable, "-m", "hotbed", "settings", "check", *args]
    env = {name: value for name, value in os.environ.items() if name not in NAMES} | environment
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=60)


def test_explains_judges_and_gives_a_line_to_paste() -> None:
    result = check("max_split_size_mb:128, roundup_power2_divisions:[256:2,>:4]", "--torch", "2.14")
    assert result.returncode == 0
    words = " ".join(result.stdout.split())
    assert "free blocks of 128 MiB or more are never split" in words
    assert "warning: split-without-limit" in words
    assert "→ choose it by measurement: hotbed tune TRACE" in words
    line = "export PYTORCH_CUDA_ALLOC_CONF='max_split_size_mb:128,roundup_power2_divisions:[256:2,>:4]'"
    assert result.stdout.splitlines()[-1] == line


def test_an_error_is_exit_status_1_and_nothing_to_paste() -> None:
    result = check("max_split_size_mb:20", "--torch", "2.9")
    assert result.returncode == 1
    assert "max_split_size_mb must be at least 21" in " ".join(result.stdout.split())
    assert "export" not in result.stdout


def test_uses_may_be_given_in_one_word_or_several() -> None:
    together = check("expandable_segments:True", "--torch", "2.8", "--uses", "ipc,mempool")
    apart = check("expandable_segments:True", "--torch", "2.8", "--uses", "ipc", "--uses", "mempool")
    assert together.returncode == apart.returncode == 1
    assert together.stdout == apart.stdout
    assert "expandable-mempool" in together.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["expandable_segments:True", "--torch", "newest"], "'newest' is not a torch version"),
        (["expandable_segments:True", "--torch", "2.9", "--uses", "mempol"], "did you mean mempool?"),
    ],
)
def test_usage_errors_are_exit_status_2(args: list[str], message: str) -> None:
    result = check(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


def test_json_is_one_object_with_a_schema() -> None:
    result = check("expandable_segments:True", "--torch", "2.9", "--uses", "ipc", "--json")
    report = json.loads(result.stdout)
    assert report["schema"] == 1
    assert report["torch_version"] == "2.9.0"
    assert report["settings"] == "expandable_segments:True"
    assert report["variable"] == "PYTORCH_CUDA_ALLOC_CONF"
    assert report["read_from"] is None
    assert [line["key"] for line in report["explanations"]] == ["expandable_segments"]
    (finding,) = report["findings"]
    assert finding["rule"] == "expandable-ipc"
    assert set(finding) == {"severity", "rule", "message", "hint", "since", "until"}


def test_the_environment_is_read_as_that_torch_reads_it() -> None:
    both = {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64",
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
    }
    new = check("--torch", "2.10", **both)
    assert "torch 2.10.0 reads PYTORCH_CUDA_ALLOC_CONF='max_split_size_mb:64'" in new.stdout
    assert "ignores PYTORCH_ALLOC_CONF" in " ".join(new.stdout.split())
    old = check("--torch", "2.9", PYTORCH_ALLOC_CONF="expandable_segments:True")
    assert old.returncode == 1
    assert "finds no settings in the environment" in old.stdout
    assert "export PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'" in " ".join(old.stdout.split())


def test_an_empty_environment_is_fine() -> None:
    result = check("--torch", "2.14")
    assert result.returncode == 0
    assert "its defaults hold" in result.stdout


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: run `make setup`")
def test_the_installed_torch_is_found_without_importing_it() -> None:
    code = "import sys; from hotbed.settings import installed_torch; print(installed_torch(), 'torch' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    version, imported = output.split()
    assert imported == "False"
    assert json.loads(check("", "--json").stdout)["torch_version"] == version


def test_reading_settings_loads_no_toml_or_terminal_library() -> None:
    code = "import sys, hotbed.settings; print(sorted({'tomlkit', 'rich', 'click', 'numpy', 'torch'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
