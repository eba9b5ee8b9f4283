"""Programs whose passes go on from their first use of CUDA, in children of one process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from hotbed.gpu import find_gpu
from hotbed.predicting.program import Program
from hotbed.predicting.running import RunOptions, run
from hotbed.recording import fork_safety

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Server
    from hotbed.predicting.script_run import ScriptRun

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("forking")]

PYTHONS = [sys.executable, *filter(None, os.environ.get("HOTBED_TEST_PYTHONS", "").split(":"))]
THREE = ("plain, stopped at a read", "learn", "answered")

BEFORE = """
import os, random, signal, sys, threading, torch
def note(text):
    with open("notes", "a") as file:
        file.write(text + "\\n")
note("begun")
"""


@dataclass(frozen=True)
class Runner:
    """Runs a program; what it notes is in the file "notes"."""

    python: str
    folder: Path

    def __call__(self, text: str, **options: object) -> ScriptRun:
        (self.folder / "program.py").write_text(BEFORE + text)
        program = Program("script", "program.py", python=self.python, folder=str(self.folder))
        return run(program, find_gpu("h200"), RunOptions(**options))  # type: ignore[arg-type]

    def notes(self) -> list[str]:
        """Takes them away."""
        path = self.folder / "notes"
        found = path.read_text().splitlines()
        path.unlink()
        return found


@pytest.fixture(params=PYTHONS, ids=lambda python: python.split("/")[-3])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    return Runner(request.param, tmp_path)


TRAINING = """
log = open("log", "w", buffering=1)
print("before", torch.cuda.is_available(), torch.cuda.device_count(), file=log)
print("before")
data = open(__file__)
data.readline()
model = torch.nn.Linear(1024, 1024)
model = model.cuda()
note("pass")
print("after", data.readline().strip(), random.random(), torch.rand(1).item(), file=log)
print("after")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    loss = model(torch.randn(64, 1024).cuda()).square().mean()
    print(loss.item())
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_what_a_program_does_before_it_uses_cuda_happens_once(
    runner: Runner, capfd: pytest.CaptureFixture[str]
) -> None:
    forked = runner(TRAINING)
    assert forked.passes == THREE
    assert runner.notes() == ["begun", "pass", "pass", "pass"]
    log, shown = (runner.folder / "log").read_text(), capfd.readouterr().out
    repeated = runner(TRAINING, checkpoint=False)
    assert runner.notes() == ["begun", "pass"] * 3
    # A log that was open at the checkpoint holds one pass, as if the program had run once; so does what was shown.
    assert log == (runner.folder / "log").read_text()
    assert log.startswith("before True 1\nafter import os")
    assert shown == capfd.readouterr().out == "before\nafter\n1.0\n1.0\n1.0\n"
    assert figures(forked) == figures(repeated)


def figures(found: ScriptRun) -> tuple[object, ...]:
    """All that must not depend on how the passes were started."""
    (device,) = found.devices
    peaks = device.peak_allocated_bytes, device.peak_reserved_bytes, device.peak_driver_bytes
    assert device.trace
    sizes = device.trace.events.size.tolist(), device.trace.events.action.tolist()
    places = [(step.phase, step.first_event, step.end_event) for step in device.steps]
    return peaks, sizes, places, found.reads, found.host_model_bytes, found.ending, found.libraries


GENERATING = """
@torch.inference_mode()
def generate(model):
    model.cuda()
    with torch.inference_mode(False), torch.inference_mode():
        return model(torch.ones(8, 1024, device="cuda").tril())
model = torch.nn.Linear(1024, 1024)
with torch.inference_mode():
    found = generate(model)
words = torch.tensor([3, 1, 4]).cuda() + 1
print(words.tolist())
for word in words.tolist():
    found = torch.cat([found, torch.ones(word, 1024, device="cuda")])
print(found.shape[0])
"""


def test_modes_outlast_the_inference_mode_in_which_cuda_is_first_used(
    runner: Runner, capfd: pytest.CaptureFixture[str]
) -> None:
    forked = runner(GENERATING)
    assert forked.passes == THREE
    assert runner.notes() == ["begun"]
    # What the program reads is known where its tensors were followed on the host.
    assert capfd.readouterr().out == "[4, 2, 5]\n19\n"
    assert figures(forked) == figures(runner(GENERATING, checkpoint=False))


def test_a_program_that_reads_nothing_ends_with_its_plain_pass(
    runner: Runner, capfd: pytest.CaptureFixture[str]
) -> None:
    found = runner('print("before")\ntorch.ones(4).cuda()\nprint("after")\nsys.exit(5)')
    assert (found.passes, found.ending, found.script_exit_code) == (("plain",), "end", 5)
    assert capfd.readouterr().out == "before\nafter\n"


def test_with_another_thread_the_program_stays_in_its_process(runner: Runner) -> None:
    found = runner("""
threading.Thread(target=threading.Event().wait, daemon=True).start()
torch.ones(4).cuda()
note(str(os.getpid() == os.getsid(0)))
""")
    assert (found.passes, found.ending) == (("plain",), "end")
    assert runner.notes() == ["begun", "True"]


def test_what_a_child_would_lack_is_found(on_phantom: Server) -> None:
    found = on_phantom(f"""
import socket, subprocess, tempfile
from torch.utils._python_dispatch import TorchDispatchMode
spec = importlib.util.spec_from_file_location("fork_safety", {fork_safety.__file__!r})
safety = importlib.util.module_from_spec(spec)
spec.loader.exec_module(safety)
told = []
def tell():
    told.append(safety.why_not(torch, phantom))
tell()
with tempfile.TemporaryDirectory(): tell()
with socket.socket(): tell()
with TorchDispatchMode():
    tell()
with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
    tell()
leave = threading.Event()
thread = threading.Thread(target=leave.wait)
thread.start()
tell()
leave.set(), thread.join()
tell()
pinned = torch.ones(4).pin_memory()
tell()
answer(told=told)
""")
    assert found.told == [
        None,
        "a temporary folder would be removed by the first child",
        "there are open sockets",
        "a mode of torch is active",
        "there are child processes",
        "threads are running",
        None,
        "the driver is already in use",
    ]


@pytest.mark.slow
def test_workers_of_a_data_loader_may_not_use_cuda(runner: Runner) -> None:
    found = runner("""
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        try:
            return torch.zeros(1, device="cuda")
        except RuntimeError as error:
            return str(error)[:30]
torch.ones(4).cuda().sin().sum().item()
for batch in torch.utils.data.DataLoader(Data(), num_workers=2):
    note(batch[0])
""")
    assert found.passes == THREE
    assert runner.notes() == ["begun", *["Cannot re-initialize CUDA in f"] * 8]


def test_a_signal_that_kills_a_pass_is_told(runner: Runner) -> None:
    found = runner("torch.ones(4).cuda()\nos.kill(os.getpid(), signal.SIGKILL)")
    assert (found.passes, found.ending, found.script_exit_code) == (("plain",), "killed", None)


def test_ctrl_c_ends_the_learning_and_all_that_would_follow(runner: Runner) -> None:
    os.mkfifo(runner.folder / "ready")

    def interrupt() -> None:
        (runner.folder / "ready").read_text()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    found = runner("""
torch.ones(4).cuda().sin().sum().item()
with open("ready", "w") as file:
    file.write("ready")
signal.pause()
""")
    thread.join()
    assert (found.ending, found.passes) == ("interrupted", THREE[:2])


@pytest.mark.parametrize(
    "reads", [pytest.param("", marks=pytest.mark.slow), "torch.ones(4).cuda().sin().sum().item()\n"]
)
def test_files_that_are_left_open_are_written_at_the_end(runner: Runner, reads: str) -> None:
    runner(
        'before = open("before", "w")\nbefore.write("a")\nx = torch.ones(4).cuda()\n'
        + reads
        + 'text, data = open("text", "w"), open("data", "w+b")\ntext.write("late")\ndata.write(b"x" * 9)\n'
        'before.write("b")\n'
    )
    assert (runner.folder / "before").read_text() == "ab"
    assert (runner.folder / "text").read_text() == "late"
    assert (runner.folder / "data").read_bytes() == b"x" * 9


def test_the_traceback_of_a_program_holds_its_own_frames_and_those_of_torch(runner: Runner) -> None:
    found = runner("os.environ['CUDA_VISIBLE_DEVICES'] = '7'\ntorch.ones(4).cuda()")
    assert found.error is not None
    assert "_lazy_init" in found.error.traceback
    assert "recording" not in found.error.traceback


@pytest.mark.parametrize(
    ("failure", "words", "checkpoint"),
    [
        ("raise ValueError('no modes, please')", "ValueError: no modes, please", False),
        ("print('last words', file=sys.stderr); sys.stderr.flush(); os.abort()", "last words", True),
    ],
)
def test_a_learning_pass_that_fails_is_told(
    runner: Runner, failure: str, words: str, checkpoint: bool
) -> None:
    found = runner(
        f"""
torch.ones(4).cuda().sin().sum().item()
if torch._C._len_torch_dispatch_stack():
    {failure}
""",
        checkpoint=checkpoint,
    )
    assert found.ending == "end"
    assert f"the learning pass failed: {words}; values are told by policy" in found.not_modelled
