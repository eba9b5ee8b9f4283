"""How a program is started and ended: as Python itself would, whatever it does. These programs need no torch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import TorchError, UsageError
from hotbed.gpu import find_gpu
from hotbed.predicting.program import Program
from hotbed.predicting.running import RunOptions, run
from hotbed.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.predicting.program import Kind
    from hotbed.predicting.script_run import ScriptRun


@dataclass(frozen=True)
class Runner:
    """Writes a script, runs it, and gives what it printed."""

    folder: Path
    output: pytest.CaptureFixture[str]

    def __call__(
        self, text: str, *arguments: str, kind: Kind = "script", target: str = "train.py", **options: object
    ) -> tuple[ScriptRun, str, str]:
        (self.folder / "train.py").write_text(text)
        program = Program(kind, target, arguments, folder=str(self.folder))
        found = run(program, find_gpu("h200"), RunOptions(**options))  # type: ignore[arg-type]
        printed = self.output.readouterr()
        return found, printed.out, printed.err


@pytest.fixture
def runner(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Runner:
    return Runner(tmp_path, capfd)


START = """
import sys, os
print(sys.argv, __name__, __file__ if "__file__" in globals() else None, __spec__ and __spec__.name)
print(sys.path[0] in ("", os.getcwd()), sys.modules["__main__"].__dict__ is globals(), "hotbed" in sys.modules)
if __name__ == "__main__":
    print("main")
"""


@pytest.mark.parametrize("kind", ["script", "module"])
def test_a_program_finds_what_python_gives_it(runner: Runner, kind: Kind) -> None:
    target = "train.py" if kind == "script" else "train"
    _, printed, _ = runner(START, "--lr", "3e-4", kind=kind, target=target)
    command = [sys.executable, *(["-m"] if kind == "module" else []), target, "--lr", "3e-4"]
    expected = subprocess.run(command, capture_output=True, text=True, check=True, cwd=runner.folder)
    assert printed == expected.stdout


def test_a_program_from_stdin_finds_what_python_gives_it(runner: Runner) -> None:
    _, printed, _ = runner("", "a", kind="stdin", target=START)
    expected = subprocess.run(
        [sys.executable, "-", "a"], input=START, capture_output=True, text=True, check=True, cwd=runner.folder
    )
    assert printed == expected.stdout


def test_a_callable_runs_in_its_module(runner: Runner) -> None:
    text = "import sys\nclass Trainer:\n    @staticmethod\n    def fit():\n        print(__name__, sys.argv[1:])\n"
    _, printed, _ = runner(text, "x", kind="callable", target="train:Trainer.fit")
    assert printed == "train ['x']\n"


def test_a_function_of_a_notebook_runs_from_its_source(runner: Runner) -> None:
    (runner.folder / "train.py").write_text("")
    program = Program(
        "callable", "source:fit", folder=str(runner.folder), source="def fit():\n    print('fits')\n"
    )
    run(program, find_gpu("h200"))
    assert runner.output.readouterr().out == "fits\n"


FAILS = """
def inner():
    return {}["key"]
try:
    1 / 0
except ZeroDivisionError:
    inner()
"""


def test_a_failing_script_shows_its_own_traceback_and_nothing_of_ours(runner: Runner) -> None:
    found, _, printed = runner(FAILS)
    expected = subprocess.run(
        [sys.executable, "train.py"], capture_output=True, text=True, check=False, cwd=runner.folder
    )
    assert printed == expected.stderr
    assert (found.ending, found.script_exit_code) == ("error", 1)
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("KeyError", "'key'")
    assert found.error.traceback == expected.stderr


def test_a_syntax_error_is_shown_as_python_shows_it(runner: Runner) -> None:
    found, _, printed = runner("x = (\n")
    expected = subprocess.run(
        [sys.executable, "train.py"], capture_output=True, text=True, check=False, cwd=runner.folder
    )
    assert printed == expected.stderr
    assert found.ending == "error"


@pytest.mark.parametrize(
    ("code", "status", "said"), [("5", 5, ""), ("", 0, ""), ("'no data'", 1, "no data\n"), ("None", 0, "")]
)
def test_exit_codes_are_kept(runner: Runner, code: str, status: int, said: str) -> None:
    found, _, printed = runner(f"import sys\nsys.exit({code})\n")
    assert (found.ending, found.script_exit_code, printed) == ("end", status, said)
    assert (found.error.type if found.error else None) == ("SystemExit" if status else None)


def test_a_program_that_leaves_by_os_exit_is_known_with_its_status(runner: Runner) -> None:
    found, _, _ = runner("import os\nos._exit(4)\n")
    assert (found.ending, found.script_exit_code, found.unrecorded) == ("end", 4, None)


def test_a_keyboard_interrupt_of_the_programs_own_making_is_an_error(runner: Runner) -> None:
    found, _, printed = runner("raise KeyboardInterrupt\n")
    assert (found.ending, found.script_exit_code) == ("error", 130)
    assert printed.splitlines()[-1] == "KeyboardInterrupt"


def test_an_interpreter_without_torch_is_named_and_the_program_shows_nothing(runner: Runner) -> None:
    with pytest.raises(TorchError, match="has no torch"):
        runner("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    assert runner.output.readouterr() == ("", "")


def test_the_run_ends_when_stdout_holds_the_text(runner: Runner) -> None:
    found, printed, _ = runner("for i in range(10**9):\n    print('epoch', i)\n", until="epoch 3")
    assert (found.ending, printed.splitlines()[-1]) == ("until", "epoch 3")


def test_what_a_program_does_at_its_end_is_done_when_it_is_stopped(runner: Runner) -> None:
    text = """
import atexit
atexit.register(print, "at exit")
try:
    while True:
        try:
            print("go")
        except Exception:
            print("never")
finally:
    print("finally")
"""
    _, printed, _ = runner(text, until="go")
    assert printed.splitlines() == ["go", "finally", "at exit"]


def test_an_endless_loop_ends_at_the_time_limit(runner: Runner) -> None:
    found, printed, _ = runner("print('begun')\nwhile True:\n    pass\n", time_limit_s=0.5)
    assert (found.ending, printed) == ("time", "begun\n")


def test_a_program_that_takes_too_much_host_memory_is_ended(runner: Runner) -> None:
    text = "import time\nkept = []\nwhile True:\n    kept.append(bytearray(1 << 20))\n    time.sleep(1e-3)\n"
    found, _, _ = runner(text, host_limit_bytes=100 * MIB)
    assert found.ending == "host_memory"
    assert 100 * MIB < found.host_peak_bytes < 1000 * MIB


def test_ctrl_c_ends_the_program_and_keeps_what_is_known(runner: Runner) -> None:
    os.mkfifo(runner.folder / "ready")
    text = "open('ready', 'w').close()\nwhile True:\n    pass\n"

    def interrupt() -> None:
        (runner.folder / "ready").read_text()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    found, _, printed = runner(text)
    thread.join()
    assert (found.ending, found.error, printed) == ("interrupted", None, "")


def test_a_killed_program_is_said_to_be_killed(runner: Runner) -> None:
    found, _, _ = runner("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert (found.ending, found.script_exit_code) == ("killed", None)
    assert "killed" in (found.unrecorded or "")


def test_children_and_forks_of_the_program_are_left_alone(runner: Runner) -> None:
    text = """
import multiprocessing, os, subprocess, sys
class Item:
    pass
def work(item):
    return type(item).__name__, __name__
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.apply(work, (Item(),)))
    sys.stdout.flush()  # or both would write what is buffered
    if os.fork() == 0:
        sys.exit(9)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
    print(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True).stdout.strip())
"""
    found, printed, _ = runner(text)
    spawned = "('Item', '__mp_main__')"
    assert printed.splitlines() == ["('Item', '__main__')", spawned, spawned, "9", "child"]
    assert (found.ending, found.script_exit_code) == ("end", 0)


def test_output_goes_where_it_is_wanted(runner: Runner) -> None:
    assert runner("print('x')", echo="stderr")[1:] == ("", "x\n")
    assert runner("print('x')", echo="none")[1:] == ("", "")


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no nothing\.py"):
        run(Program("script", "nothing.py", folder=str(tmp_path)), find_gpu("h200"))
