"""The C launcher: becomes the Python beside it, or says in one line why it cannot. Compiled with sanitizers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "native" / "launcher" / "launcher.c"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
ECHO = """#!/bin/sh
for argument in "$@"; do printf '[%s]' "$argument"; done
exit 7
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher, built strictly."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("launcher") / "hotbed"
    strict = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g"]
    subprocess.run([compiler, *strict, *SANITIZE, "-o", path, SOURCE], check=True)
    return path


def install(compiled: Path, folder: Path, python: str | None) -> Path:
    """Puts the launcher into `folder`, and beside it a stand-in called `python` that shows its arguments."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = Path(shutil.copy(compiled, folder / "hotbed"))
    if python:
        interpreter = folder / python
        interpreter.write_text(ECHO)
        interpreter.chmod(0o755)
    return launcher


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("python", ["python3", "python"])
def test_arguments_reach_python_unchanged_and_its_status_comes_back(
    compiled: Path, tmp_path: Path, python: str
) -> None:
    launcher = install(compiled, tmp_path / "a b", python)
    result = run(launcher, "fit", "two words", "", "größe", "--x=1")
    assert result.stdout.startswith("[-c][import sys;")
    assert result.stdout.endswith("][fit][two words][][größe][--x=1]")
    assert (result.returncode, result.stderr) == (7, "")


def test_the_python_beside_the_file_is_used_not_the_one_beside_a_link(compiled: Path, tmp_path: Path) -> None:
    launcher = install(compiled, tmp_path / "venv", "python3")
    link = tmp_path / "bin" / "hotbed"
    link.parent.mkdir()
    link.symlink_to(launcher)
    assert run(link, "top").stdout.endswith("[top]")


def test_without_a_python_it_says_so_in_one_line(compiled: Path, tmp_path: Path) -> None:
    launcher = install(compiled, tmp_path, None)
    result = run(launcher, "gpus")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert f"no python3 beside {launcher}" in result.stderr
    assert "`python3 -m hotbed`" in result.stderr


def test_a_python_that_cannot_start_is_named(compiled: Path, tmp_path: Path) -> None:
    launcher = install(compiled, tmp_path, None)
    (tmp_path / "python3").mkdir()  # a folder passes the check for execute permission
    result = run(launcher, "gpus")
    assert result.returncode == 2
    assert f"cannot start {tmp_path / 'python3'}: Permission denied" in result.stderr


def test_python_m_hotbed_imports_no_click_from_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('imported from the working folder')")
    command = [sys.executable, "-m", "hotbed", "gpus", "h200", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)
    assert result.returncode == 0, result.stderr
    assert '"slug":"h200"' in result.stdout


def test_the_command_runs_nothing_from_the_working_folder(compiled: Path, tmp_path: Path) -> None:
    """`python -m` imports pathlib and more before hotbed can take the working folder off the path."""
    launcher = install(compiled, tmp_path / "bin", "python3")
    (tmp_path / "bin" / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("click", "contextlib", "importlib", "json", "os", "pathlib", "pkgutil", "runpy", "types"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the working folder')")
    result = subprocess.run(
        [launcher, "gpus", "h200", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert '"slug":"h200"' in result.stdout
