"""Programs of many kinds, run unmodified: a training step's memory by arithmetic, endings, steps, guesses."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from tests.phantom.conftest import PYTHONS

from hotbed.gpu import find_gpu
from hotbed.predicting.growth import growth_per_step_bytes
from hotbed.predicting.peaks import Peaks
from hotbed.predicting.program import Program
from hotbed.predicting.running import RunOptions, run
from hotbed.units import GIB, MIB

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.predicting.script_run import DeviceRun, ScriptRun

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("forking")]

TORCH = "import torch\nfrom torch import nn\n"


@dataclass
class Runner:
    """Runs the text of a program with one interpreter's torch; what it printed is in `printed`."""

    python: str
    folder: Path
    capfd: pytest.CaptureFixture[str]
    printed: list[str] = field(default_factory=list)
    complaints: str = ""

    def __call__(
        self, text: str, *, start: str = TORCH, environment: dict[str, str] | None = None, **options: Any
    ) -> ScriptRun:
        (self.folder / "program.py").write_text(start + text)
        variables = tuple((environment or {}).items())
        program = Program(
            "script", "program.py", python=self.python, folder=str(self.folder), environment=variables
        )
        found = run(program, find_gpu("h200"), RunOptions(**options))
        out, self.complaints = self.capfd.readouterr()
        self.printed = out.splitlines()
        return found


@pytest.fixture(params=PYTHONS, ids=lambda python: python.split("/")[-3])
def runner(request: pytest.FixtureRequest, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Runner:
    return Runner(request.param, tmp_path, capfd)


def most(device: DeviceRun) -> dict[str, int]:
    """Category → most bytes that it ever held."""
    assert device.trace is not None
    return {row.category: row.peak_bytes for row in Peaks.of(device.trace).whole(device.peak_allocated_bytes)}


def test_a_language_model_with_a_loss_scaler_reads_logs_and_saves(runner: Runner) -> None:
    """12 parameters in fp32 with Adam; two micro-batches a step; gradients checked, clipped and scaled."""
    found = runner("""
import copy, io
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model, mean = layer.cuda(), copy.deepcopy(layer).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
scaler = torch.amp.GradScaler("cuda")
for step in range(50):
    for _ in range(2):
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.randn(4, 64, 256, device="cuda")).square().mean() / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    schedule.step(loss.item())
    with torch.no_grad():
        torch._foreach_lerp_(list(mean.parameters()), list(model.parameters()), 0.01)
    if not torch.isfinite(loss):
        raise SystemExit("the loss is not finite")
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    print(step, norm, file.tell())
""")
    assert (found.ending, found.optimizer_steps) == ("steps", 3), runner.complaints
    (device,) = found.devices
    held = most(device)
    one_set = 4 * (256 * 768 + 768 + 256 * 256 + 256 + 2 * (256 * 1024) + 1024 + 256 + 4 * 256)
    assert held["parameters"] == 2 * one_set
    assert held["gradients"] == one_set
    assert one_set * 2 <= held["optimizer state"] < one_set * 2 + 8 * 1024
    assert [line.split()[0] for line in runner.printed] == ["0", "1"]
    assert int(runner.printed[0].split()[-1]) > 3 * one_set
    assert any(read.operation == "item" and not read.known for read in found.reads)
    assert found.passes[-1] == "answered"


def test_experts_are_routed_and_texts_generated_until_they_end(runner: Runner) -> None:
    found = runner("""
torch.manual_seed(0)
gate = nn.Linear(64, 4).cuda()
experts = nn.ModuleList(nn.Linear(64, 64) for _ in range(4)).cuda()
optimizer = torch.optim.SGD([*gate.parameters(), *experts.parameters()], lr=0.1)
x = torch.randn(256, 64, device="cuda")
weight, choice = gate(x).softmax(-1).topk(2)
result, routed = torch.zeros_like(x), 0
for number, expert in enumerate(experts):
    rows, places = torch.where(choice == number)
    routed += len(rows)
    if len(rows):
        result.index_add_(0, rows, expert(x[rows]) * weight[rows, places, None])
result[result > 0].sum().backward()
boxes = torch.rand(100, 4, device="cuda").cumsum(1)
boxes = boxes[boxes[:, 2] > 0.5]
with torch.no_grad():
    ids, ended = torch.randint(5, 50, (4, 3), device="cuda"), torch.zeros(4, dtype=torch.bool, device="cuda")
    while ids.shape[1] < 12 and not ended.all():
        new = torch.multinomial(torch.rand(4, 50, device="cuda"), 1)
        ended |= new[:, 0] == 2
        ids = torch.cat([ids, new], 1)
    words = ids.tolist()
optimizer.step()
print(0 < routed <= 1024, 0 <= len(boxes) <= 100, 3 < len(words[0]) <= 12)
print(all(0 <= word < 50 for row in words for word in row))
print(torch.arange(3.0, device="cuda"))
""")
    assert (found.ending, found.script_exit_code) == ("end", 0), runner.complaints
    assert runner.printed[:2] == ["True True True", "True"]
    assert runner.printed[2] == "tensor([0., 1., 2.], device='cuda:0')"
    assert {read.operation for read in found.reads} >= {"nonzero"}


def test_a_step_within_a_cuda_graph_is_seen_with_its_pool(runner: Runner) -> None:
    """As torch's manual shows it: three steps of warm-up on a side stream, capture, replays."""
    found = runner("""
model = nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
x, side = torch.zeros(256, 1024, device="cuda"), torch.cuda.Stream()
def step():
    optimizer.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    optimizer.step()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for number in range(10_000):
    x.copy_(torch.randn(256, 1024))
    graph.replay()
    print(number)
""")
    # The third replay is the end of the third step that counts.
    assert (found.ending, found.optimizer_steps) == ("steps", 3 + 3), runner.complaints
    assert runner.printed == ["0"]
    trace = found.devices[0].trace
    assert trace is not None
    assert len(set(trace.events.pool.tolist())) > 1


def test_a_batch_chosen_by_free_memory_is_that_of_the_card(runner: Runner) -> None:
    """Half of what is free, in batches of 64 MiB of activations."""
    found = runner(
        """
free, total = torch.cuda.mem_get_info()
batch = free // 2 // (64 << 20)
print(batch, total >> 30)
model = nn.Linear(1024, 4, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    model(torch.ones(batch * 16384, 1024, device="cuda")).sum().backward()
    optimizer.step()
""",
        total_bytes=16 * GIB,
    )
    batch, total = map(int, runner.printed[0].split())
    assert total == 16
    assert 7 * GIB < batch * 64 * MIB <= 8 * GIB
    assert 2 * batch * 64 * MIB > found.devices[0].peak_allocated_bytes > batch * 64 * MIB


def test_convolutions_and_recurrent_layers_train_and_serve_from_threads(runner: Runner) -> None:
    found = runner("""
from concurrent.futures import ThreadPoolExecutor
torch.backends.cudnn.benchmark = True
convolution = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()).cuda()
recurrent, head = nn.LSTM(64, 64, 2, dropout=0.1, batch_first=True).cuda(), nn.Linear(64, 64).cuda()
model = nn.ModuleList([convolution, recurrent, head])
optimizer = torch.optim.Adam(model.parameters())
def forward(n=4):
    seen = convolution(torch.randn(n, 3, 32, 32, device="cuda")).mean((2, 3))
    lengths = torch.arange(1, n + 1)
    packed = nn.utils.rnn.pack_padded_sequence(
        torch.randn(n, n, 64, device="cuda"), lengths, batch_first=True, enforce_sorted=False)
    text, _ = nn.utils.rnn.pad_packed_sequence(recurrent(packed)[0], batch_first=True)
    spoken = head(text).log_softmax(-1).transpose(0, 1)
    targets = torch.ones(n, 1, dtype=torch.long, device="cuda")
    return seen.sum() + nn.functional.ctc_loss(spoken, targets, torch.full((n,), n), torch.ones(n).long())
for _ in range(2):
    forward().backward()
    optimizer.step()
model.eval()
def serve(n):
    with torch.inference_mode():
        return forward(n).shape
with ThreadPoolExecutor(4) as pool:
    assert list(pool.map(serve, range(1, 9))) == [()] * 8
""")
    assert (found.ending, found.script_exit_code) == ("end", 0), runner.complaints
    assert found.optimizer_steps == 2
    assert [step.phase for step in found.devices[0].steps] == ["setup", "train", "train", "eval"]


def test_own_optimizers_frozen_layers_and_master_weights(runner: Runner) -> None:
    """8 MiB of frozen weights that are cast to half precision, two trained factors of 64 KiB, their copies in full precision."""
    found = runner("""
class Sign(torch.optim.Optimizer):
    def __init__(self, parameters): super().__init__(parameters, {})
    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.sub_(self.state[p].setdefault("mean", torch.zeros_like(p)).lerp_(p.grad, 0.1).sign())
class Low(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(2048, 2048, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(2048, 16, bias=False), nn.Linear(16, 2048, bias=False)
    def forward(self, x): return self.frozen(x) + self.up(self.down(x))
with torch.device("meta"): model = Low()
model.to_empty(device="cuda").half()
trained = [p for p in model.parameters() if p.requires_grad]
master = [p.detach().float().requires_grad_() for p in trained]
optimizer, leak = Sign(master), []
for step in range(50):
    model(torch.ones(32, 2048, device="cuda", dtype=torch.half)).float().sum().backward()
    for full, half in zip(master, trained):
        full.grad, half.grad = half.grad.float(), None
    optimizer.step()
    for full, half in zip(master, trained):
        half.data.copy_(full.data)
    optimizer.zero_grad()
    leak.append(torch.empty(3 << 20, dtype=torch.uint8, device="cuda"))
""")
    assert (found.ending, found.optimizer_steps) == ("steps", 3), runner.complaints
    (device,) = found.devices
    factors = 2 * 16 * 2048
    held = most(device)
    # At most while the first layer is cast: all in full precision, and that layer in half.
    assert held["parameters"] == 4 * (2048 * 2048 + factors) + 2 * 2048 * 2048
    assert held["optimizer state"] == 2 * 4 * factors  # means, and the copies that are stepped
    assert found.host_model_bytes == 0
    assert device.trace is not None
    assert growth_per_step_bytes(device.trace, device.steps) == 3 * MIB


def test_a_large_model_without_values_costs_no_host_memory(runner: Runner) -> None:
    found = runner("""
with torch.device("meta"):
    model = nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(8)])
model.to_empty(device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    model(torch.ones(16, 16384, device="cuda")).sum().backward()
    optimizer.step()
""")
    held = most(found.devices[0])
    assert (held["parameters"], held["gradients"]) == (8 * GIB, 8 * GIB)
    assert found.host_peak_bytes < GIB


def test_a_program_without_a_known_optimizer_ends_by_its_backward_passes(runner: Runner) -> None:
    found = runner("""
weight = torch.zeros(1024, 1024, device="cuda", requires_grad=True)
while True:
    weight.square().sum().backward()
    with torch.no_grad():
        weight -= weight.grad
    weight.grad = None
""")
    assert (found.ending, found.optimizer_steps) == ("steps", 0)


def test_a_backend_without_history_still_has_peaks(runner: Runner) -> None:
    found = runner(
        """
weight = nn.Parameter(torch.zeros(16 << 20, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
while True:
    weight.sum().backward()
    optimizer.step()
""",
        environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    )
    (device,) = found.devices
    assert (found.optimizer_steps, device.trace) == (3, None)
    assert 128 * MIB <= device.peak_allocated_bytes < 129 * MIB


@pytest.mark.parametrize(
    ("last", "code", "words"),
    [
        ("sys.exit(5)", 5, ""),
        ("sys.exit('no data')", 1, "no data"),
        ("inner()", 1, "in inner"),
        ("os.kill(os.getpid(), 9)", None, ""),
    ],
)
def test_a_bad_end_is_the_programs_own(runner: Runner, last: str, code: int | None, words: str) -> None:
    found = runner(f"import os, sys\ndef inner():\n    raise ValueError('mine')\n{last}\n", start="")
    assert found.script_exit_code == code
    assert words in runner.complaints
    assert "hotbed" not in runner.complaints


EXTENSION = """
import pathlib
from torch.utils.cpp_extension import load_inline
library = next(pathlib.Path(torch.__file__).parent.parent.glob("nvidia/**/lib/libcudart.so.*"))
source = '''
#include <torch/extension.h>
extern "C" { int cudaGetDevice(int*); int cudaMalloc(void**, size_t); int cudaMemset(void*, int, size_t);
int cudaMemGetInfo(size_t*, size_t*); int cudaDeviceSynchronize(); }
torch::Tensor twice(torch::Tensor x) {
    static void* own = nullptr;
    int device = -1;
    size_t free = 0, total = 0;
    TORCH_CHECK(cudaGetDevice(&device) == 0 && device == 0);
    TORCH_CHECK(own != nullptr || cudaMalloc(&own, 64 << 20) == 0);
    TORCH_CHECK(cudaMemset(own, 0, 64 << 20) == 0 && cudaDeviceSynchronize() == 0);
    TORCH_CHECK(cudaMemGetInfo(&free, &total) == 0 && free < total);
    return x * 2;
}
'''
own = load_inline("own", source, functions=["twice"], build_directory=".",
                  extra_ldflags=[f"-L{library.parent}", f"-l:{library.name}"])
weight = nn.Parameter(torch.zeros(1 << 20, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
while True:
    own.twice(weight.detach())
    weight.sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_an_extension_that_takes_memory_from_the_driver_is_counted(runner: Runner) -> None:
    if shutil.which("c++") is None or shutil.which("ninja") is None:
        pytest.skip("torch's extensions need a C++ compiler and ninja")
    found = runner(EXTENSION)
    assert (found.ending, found.optimizer_steps) == ("steps", 3), runner.complaints
    (device,) = found.devices
    context = found.gpu.context_bytes or 0
    assert device.peak_driver_bytes - device.peak_reserved_bytes - context == 64 * MIB


@pytest.mark.slow
def test_a_compiled_model_trains_with_the_memory_that_it_trains_with_on_a_gpu(runner: Runner) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("Triton needs a C compiler")
    found = runner(
        """
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024)).cuda()
compiled, optimizer = torch.compile(model), torch.optim.AdamW(model.parameters(), fused=True)
while True:
    loss = compiled(torch.randn(512, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
""",
        environment={"TORCHINDUCTOR_CACHE_DIR": str(runner.folder), "TORCHINDUCTOR_COMPILE_THREADS": "1"},
    )
    assert (found.ending, found.optimizer_steps) == ("steps", 3), runner.complaints
    one_set = 4 * (256 * 1024 + 3 * 1024)
    held = most(found.devices[0])
    assert (held["parameters"], held["gradients"]) == (one_set, one_set)
    assert dict(found.libraries).get("kernels", 0) > 0
