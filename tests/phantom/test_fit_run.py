"""Small training programs, recorded on the phantom: steps, phases, categories, endings."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from hotbed.gpu import find_gpu
from hotbed.phantom import start
from hotbed.predicting.program import Program
from hotbed.predicting.running import RunOptions, run, write_trace
from hotbed.replaying.steps import find_steps
from hotbed.trace import Action, load_devices
from hotbed.trace.model import NONE
from hotbed.units import GIB, MIB

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.predicting.script_run import DeviceRun, ScriptRun
    from hotbed.trace.marking.phases import StepMark

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("forking")]

PYTHONS = [sys.executable, *filter(None, os.environ.get("HOTBED_TEST_PYTHONS", "").split(":"))]

MODEL = """
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, side=1024):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(side, 1024))
        self.register_buffer("shift", torch.zeros(256, 1024))
    def forward(self, x):
        return (x * self.weight).sin()

def batch():
    return torch.randn(1024, 1024).cuda()
"""


@dataclass(frozen=True)
class Runner:
    """Runs a program with one interpreter's torch."""

    python: str
    folder: Path

    def __call__(self, text: str, **options: object) -> ScriptRun:
        (self.folder / "train.py").write_text(MODEL + text)
        program = Program("script", "train.py", python=self.python, folder=str(self.folder))
        return run(program, find_gpu("h200"), RunOptions(**options))  # type: ignore[arg-type]


@pytest.fixture(params=PYTHONS, ids=lambda python: python.split("/")[-3])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    return Runner(request.param, tmp_path)


def phases(device: DeviceRun) -> list[str]:
    return [step.phase for step in device.steps]


def live(device: DeviceRun, place: int) -> dict[str, int]:
    """Category → requested bytes that are live before event `place`."""
    assert device.trace
    events, held = device.trace.events, {}
    for index in range(place):
        if events.action[index] == Action.ALLOC:
            held[events.address[index]] = (events.category[index], events.size[index])
        elif events.action[index] == Action.FREE_REQUESTED:
            del held[events.address[index]]
    totals: dict[str, int] = {}
    for category, size in held.values():
        name = device.trace.strings[category]
        totals[name] = totals.get(name, 0) + int(size)
    return totals


def made(device: DeviceRun, step: StepMark) -> list[str]:
    """Categories of the allocations of one step."""
    assert device.trace
    numbers = device.trace.events.category[step.first_event : step.end_event]
    return [device.trace.strings[number] for number in numbers if number != NONE]


LOOP = """
model = Scale().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for i in range(100):
    loss = model(batch()).square().sum()
    loss.backward()
    optimizer.step()
    if i == 1:
        model.eval()
        with torch.no_grad():
            model(batch())
        model.train()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module", params=PYTHONS, ids=lambda python: python.split("/")[-3])
def loops(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[ScriptRun]:
    """LOOP, three times."""
    runner = Runner(request.param, tmp_path_factory.mktemp("loop"))
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(runner, [LOOP] * 3))


def test_a_training_loop_is_cut_into_steps_and_its_memory_has_names(loops: list[ScriptRun]) -> None:
    found = loops[0]
    assert (found.ending, found.optimizer_steps, found.error) == ("steps", 3, None)
    assert found.host_model_bytes == 5 * MIB
    (device,) = found.devices
    assert phases(device) == ["setup", "train", "train", "eval", "train"]
    assert live(device, device.steps[0].end_event) == {"parameters": 4 * MIB, "buffers": MIB}
    assert live(device, device.steps[1].end_event) == {
        "parameters": 4 * MIB,
        "buffers": MIB,
        "gradients": 4 * MIB,
        "optimizer state": 8 * MIB,
        # The loss.
        "activations": 4,
    }
    assert made(device, device.steps[1]).count("inputs") == 1
    assert made(device, device.steps[3]).count("activations") == 0


def test_the_categories_of_what_is_live_add_up_to_what_torch_counts(
    runner: Runner, capfd: pytest.CaptureFixture[str]
) -> None:
    counted = "    print(torch.cuda.memory_stats()['requested_bytes.all.current'])\n    if i == 1:"
    found = runner(LOOP.replace("    if i == 1:", counted))
    printed = [int(line) for line in capfd.readouterr().out.splitlines()]
    (device,) = found.devices
    ends = [step.end_event for step in device.steps if step.phase == "train"]
    assert [sum(live(device, end).values()) for end in ends[:2]] == printed[:2]


def test_the_trace_can_be_written_and_keeps_steps_and_categories(
    loops: list[ScriptRun], tmp_path: Path
) -> None:
    assert write_trace(loops[0], tmp_path / "run.hbt")
    (trace,) = load_devices(tmp_path / "run.hbt")
    wanted = loops[0].devices[0].trace
    assert wanted
    assert trace.strings == wanted.strings
    assert (trace.events.category == wanted.events.category).all()
    assert (trace.events.step == wanted.events.step).all()
    assert find_steps(trace).source == "recorded"
    assert len(find_steps(trace)) == 3


TALE = """
import atexit, gc, json
model = nn.Sequential(Scale(), Scale()).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for i in range(4):
    h = torch.utils.checkpoint.checkpoint(model[0], batch().requires_grad_(), use_reentrant=True)
    model[1](h).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    model.eval()
    with torch.inference_mode():
        model(batch())
    model.train()
class Cycle:
    pass
cycle = Cycle()
cycle.me, cycle.tensor = cycle, torch.empty(1 << 20, device="cuda")
del cycle, model, optimizer, h
stats = torch.cuda.memory_stats()
kinds = ("allocation.all", "allocated_bytes.all", "reserved_bytes.all", "requested_bytes.all", "segment.all")
print(json.dumps({name: value for name, value in stats.items() if name.startswith(kinds)}))
"""


def test_recording_changes_nothing_that_the_allocator_counts(
    runner: Runner, capfd: pytest.CaptureFixture[str]
) -> None:
    runner(TALE, steps=None)
    recorded = capfd.readouterr().out
    with start([runner.python, "train.py"], gpu="h200", context=True, cwd=runner.folder) as alone:
        alone.wait()
    assert recorded == capfd.readouterr().out != ""


def test_the_same_script_has_the_same_peaks_each_time(loops: list[ScriptRun]) -> None:
    runs = [loop.devices[0] for loop in loops]
    assert (
        len({(run.peak_allocated_bytes, run.peak_reserved_bytes, run.peak_driver_bytes) for run in runs}) == 1
    )
    assert len({run.steps[-1].end_event for run in runs}) == 1


def test_a_step_of_accumulated_gradients_is_one_step(runner: Runner) -> None:
    found = runner("""
model = Scale().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(100):
    model(batch()).sum().backward()
    if i % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
""")
    (device,) = found.devices
    assert phases(device) == ["setup", "train", "train", "train"]
    assert [made(device, step).count("gradients") for step in device.steps] == [0, 1, 1, 1]


def test_two_optimizers_make_one_round(runner: Runner) -> None:
    found = runner("""
maker, judge = Scale().cuda(), Scale().cuda()
optimizers = [torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())]
for i in range(100):
    for _ in range(2):
        judge(maker(batch()).detach()).sum().backward()
        optimizers[1].step()
        optimizers[1].zero_grad()
    judge(maker(batch())).sum().backward()
    optimizers[0].step()
    optimizers[0].zero_grad()
print(i + 1)
""")
    assert (found.optimizer_steps, phases(found.devices[0])) == (3, ["setup", "train", "train", "train"])


def test_an_out_of_memory_error_that_ends_the_program_is_named(runner: Runner) -> None:
    found = runner(LOOP.replace("range(100)", "[torch.empty(1 << 40, device='cuda')]"), total_bytes=4 * GIB)
    assert (found.ending, found.script_exit_code) == ("out_of_memory", 1)
    assert found.error is not None
    assert found.error.requested_bytes == 4 << 40
    assert phases(found.devices[0]) == ["setup", "train"]


def test_a_program_that_never_steps_runs_to_its_end(runner: Runner) -> None:
    found = runner("""
model = Scale().cuda().eval()
with torch.no_grad():
    for _ in range(4):
        result = model(batch())
""")
    assert (found.ending, found.script_exit_code, found.optimizer_steps) == ("end", 0, 0)
    assert phases(found.devices[0]) == ["setup", "eval"]


def test_a_second_gpu_has_its_own_run_and_an_error_that_is_caught_is_part_of_it(runner: Runner) -> None:
    caught = """
try:
    torch.empty(1 << 50, device="cuda:1")
except torch.OutOfMemoryError:
    pass
"""
    loop = LOOP.replace("cuda()", "to('cuda:1')").replace("batch()", "batch().to('cuda:1')")
    found = runner(caught + loop, gpus=2)
    assert (found.ending, found.optimizer_steps) == ("steps", 3)
    assert [(device.device, device.ooms) for device in found.devices] == [(0, 0), (1, 1)]
    assert phases(found.devices[1]) == ["setup", "train", "train", "eval", "train"]
    assert not [line for line in found.not_modelled if "NCCL" in line]


def test_a_program_that_begins_to_use_nccl_is_told_that_it_has_no_model(runner: Runner) -> None:
    found = runner(
        """
import sys
try:
    nn.DataParallel(nn.Linear(4, 4).cuda())(torch.ones(2, 4, device="cuda"))
except RuntimeError as error:
    sys.exit("NCCL" in str(error) and 3)
""",
        gpus=2,
    )
    assert (found.ending, found.script_exit_code) == ("end", 3)
    assert [line for line in found.not_modelled if line.startswith("NCCL has no model yet")]


def test_workers_of_a_data_loader_are_no_part_of_a_run_that_ends_in_another_thread(runner: Runner) -> None:
    found = runner("""
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        return torch.randn(1024)
def train():
    model = Scale().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, pin_memory=True):
        model(x.cuda(non_blocking=True)[:1]).sum().backward()
        optimizer.step()
if __name__ == "__main__":
    import threading
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
""")
    assert (found.ending, found.optimizer_steps, found.error) == ("steps", 3, None)


def test_steps_within_the_backward_pass_make_rounds(runner: Runner) -> None:
    found = runner("""
model = nn.Sequential(Scale(), Scale(), Scale()).cuda()
optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}
def step(p):
    optimizers[p].step()
    optimizers[p].zero_grad()
for p in model.parameters():
    p.register_post_accumulate_grad_hook(step)
for i in range(100):
    model(batch()).sum().backward()
""")
    assert (found.ending, found.optimizer_steps) == ("steps", 3)
    assert phases(found.devices[0]) == ["setup", "train", "train", "train"]


def test_a_child_that_used_the_gpu_is_told_of(runner: Runner) -> None:
    found = runner("""
import subprocess, sys
subprocess.run([sys.executable, "-c", "import torch; torch.cuda.synchronize()"], check=True)
""")
    assert (found.used_gpu, found.devices) == (False, ())
    assert "a process that the program started used the GPU" in (found.unrecorded or "")


def test_a_context_alone_takes_no_memory_of_torch(runner: Runner) -> None:
    found = runner("torch.cuda.synchronize()")
    assert (found.ending, found.devices, found.used_gpu, found.unrecorded) == ("end", (), True, None)


def test_a_gpu_that_is_not_there_is_the_programs_own_error(runner: Runner) -> None:
    found = runner("torch.empty(8, device='cuda:0')\ntorch.empty(8, device='cuda:1')")
    assert (found.ending, found.script_exit_code) == ("error", 1)
    assert "invalid device ordinal" in (found.error.message if found.error else "")


def test_training_that_leaves_by_os_exit_is_recorded(runner: Runner) -> None:
    found = runner(LOOP.replace("range(100)", "range(2)") + "import os; os._exit(0)")
    assert (found.ending, found.optimizer_steps, found.unrecorded) == ("end", 2, None)


def test_a_block_made_before_the_first_forward_is_no_activation(runner: Runner) -> None:
    found = runner(LOOP.replace("for i", "table = torch.empty(3 << 20, device='cuda')\nfor i", 1))
    (device,) = found.devices
    assert live(device, device.steps[1].end_event)["other"] == 12 * MIB
