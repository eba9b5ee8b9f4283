"""`hotbed record`, as typed, on programs that need nothing but torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hotbed.cli import recording
from hotbed.cli.main import main
from hotbed.errors import PlatformError
from hotbed.trace import load_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Hotbed

pytestmark = pytest.mark.torch

TRAINING = """
import os, signal, sys, torch
size = int(sys.argv[1])
weight = torch.nn.Parameter(torch.empty(size << 18, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, foreach=False)
for step in range(5):
    weight.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, __name__, sys.argv)
"""
MIB = 1 << 20


def record(hotbed: Hotbed, folder: Path, *args: str, ending: str = "", code: int = 0) -> tuple[str, str]:
    """Records train.py in `folder`; stdout and stderr."""
    (folder / "train.py").write_text(TRAINING + ending)
    result = hotbed("record", "--phantom", *args, code=code, cwd=folder)
    return result.stdout, result.stderr


def test_a_program_runs_as_ever_and_its_file_is_told(hotbed_cli: Hotbed, tmp_path: Path) -> None:
    out, said = record(hotbed_cli, tmp_path, "train.py", "16")
    assert out.splitlines() == [f"step {step} __main__ ['train.py', '16']" for step in range(5)]
    assert "train.record.hbt" in said
    assert "5 training steps, peak 50.0 MiB reserved; next: hotbed report train.record.hbt" in said
    trace = load_trace(tmp_path / "train.record.hbt")
    assert trace.recorded is not None
    assert trace.recorded.complete
    assert trace.missing == ()
    assert hotbed_cli("trace", "check", "train.record.hbt", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("ending", "status", "complete"),
    [
        ("sys.exit(4)", 4, True),
        ("os._exit(5)", 5, True),
        ("raise KeyError('lost')", 1, True),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15, True),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, False),
    ],
)
def test_the_end_of_a_program_is_its_own(
    ending: str, status: int, complete: bool, hotbed_cli: Hotbed, tmp_path: Path
) -> None:
    out, said = record(hotbed_cli, tmp_path, "--json", "-o", "x.hbt", "train.py", "16", ending=ending, code=3)
    told: dict[str, Any] = json.loads(out)
    assert (told["script_exit_code"], told["file"]) == (status, "x.hbt")
    assert told["devices"][0]["complete"] is complete
    assert ("KeyError: 'lost'" in said) == ("KeyError" in ending)
    assert "/hotbed/recording/" not in said
    trace = load_trace(tmp_path / "x.hbt")
    assert trace.recorded is not None
    steps = [step for step in trace.recorded.steps if step.phase == "train"]
    assert len(steps) >= (5 if complete else 4)


def test_a_signal_that_was_sent_to_hotbed_reaches_the_program(hotbed_fresh: Hotbed, tmp_path: Path) -> None:
    ending = "os.kill(os.getppid(), signal.SIGINT)\nimport threading; threading.Event().wait()"
    out, said = record(hotbed_fresh, tmp_path, "--json", "train.py", "16", ending=ending, code=3)
    told = json.loads(out)
    assert told["script_exit_code"] == 130
    assert told["devices"][0]["complete"]
    assert "KeyboardInterrupt" in said


def test_a_name_that_a_shell_would_split_is_quoted(hotbed_cli: Hotbed, tmp_path: Path) -> None:
    _, said = record(hotbed_cli, tmp_path, "-o", "my run é.hbt", "train.py", "16")
    assert said.rstrip().endswith("next: hotbed report 'my run é.hbt'")


def test_steps_end_the_program(hotbed_cli: Hotbed, tmp_path: Path) -> None:
    out, said = record(hotbed_cli, tmp_path, "--steps", "2", "train.py", "16")
    assert len(out.splitlines()) == 1
    assert "2 training steps" in said


def test_each_rank_has_its_file_and_knows_its_number(
    hotbed_cli: Hotbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    record(hotbed_cli, tmp_path, "-o", "run.hbt", "train.py", "16")
    assert load_trace(tmp_path / "run.rank3.hbt").rank == 3


def test_a_file_that_is_no_recording_is_never_replaced(hotbed_cli: Hotbed, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    _, said = record(hotbed_cli, tmp_path, "-o", "notes.txt", "train.py", "16", code=2)
    assert "no recording" in said
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_that_cannot_be_written_is_told_before_the_program_runs(
    hotbed_cli: Hotbed, tmp_path: Path
) -> None:
    out, said = record(hotbed_cli, tmp_path, "-o", "n" * 300, "train.py", "16", code=2)
    assert (out, said.splitlines()[0]) == ("", f"error: {'n' * 300} cannot be written: File name too long")


def test_a_thread_that_first_uses_the_gpu_may_end(hotbed_cli: Hotbed, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("""
import threading, torch
thread = threading.Thread(target=lambda: torch.zeros(1 << 20, device="cuda").add_(1))
thread.start()
thread.join()
""")
    result = hotbed_cli("record", "--phantom", "train.py", cwd=tmp_path)
    assert result.stderr.splitlines()[0].startswith("train.record.hbt: ")


def test_a_program_without_gpu_memory_is_no_recording(hotbed_cli: Hotbed, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch")
    result = hotbed_cli("record", "--phantom", "train.py", code=1, cwd=tmp_path)
    assert "did not use the GPU" in result.stderr


def test_without_a_gpu_the_phantom_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_driver(*_: object) -> None:
        raise PlatformError("no driver")

    monkeypatch.setattr(recording, "live_gpus", no_driver)
    monkeypatch.setattr(recording, "_has_driver", lambda: False)
    (tmp_path / "train.py").write_text(TRAINING)
    with pytest.raises(SystemExit) as stop:
        main(["record", str(tmp_path / "train.py")])
    assert stop.value.code == 1
    assert "hotbed record --phantom" in capsys.readouterr().err
