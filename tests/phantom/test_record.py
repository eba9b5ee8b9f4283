"""hotbed.record in a process that uses the GPU: what the file holds is what torch did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hotbed
from hotbed.trace import Action, load_trace
from hotbed.trace.checking import check
from hotbed.trace.compaction import write_compact

if TYPE_CHECKING:
    from tests.phantom.conftest import Server

    from hotbed.trace import Trace

pytestmark = pytest.mark.torch

MIB = 1 << 20
PRELUDE = f"""
import sys
sys.path.insert(0, {str(Path(hotbed.__file__).parent.parent)!r})
import hotbed, os, shutil, signal
from pathlib import Path
from hotbed.recording.beginning import attach
from hotbed.recording.current import make_current
from hotbed.recording.recorder import Options, Recorder
from hotbed.recording.schedule import Plan

def begin(path, **plan):
    recorder = Recorder(Path(path), Options(Plan(**plan)))
    make_current(recorder)
    attach(recorder)
    return recorder

def model():
    net = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(3))).cuda()
    return net, torch.optim.Adam(net.parameters(), foreach=False)

def train(net, optimizer, steps, after=lambda step: None):
    for step in range(steps):
        batch = torch.ones(64, 512).cuda()
        optimizer.zero_grad()
        net(batch).sum().backward()
        optimizer.step()
        after(step)

def peaks():
    return stat("allocated_bytes.all.peak"), stat("reserved_bytes.all.peak"), stat("allocation.all.allocated")
"""


def categories(trace: Trace) -> dict[str, int]:
    """Bytes that were allocated for each."""
    events = trace.events
    made = events.action == Action.ALLOC
    return {
        name: int(events.size[made & (events.category == number)].sum())
        for number, name in enumerate(trace.strings)
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.hbt"


def test_steps_categories_and_peaks_are_those_of_the_program(on_phantom: Server, path: Path) -> None:
    run = on_phantom(
        PRELUDE + f"with hotbed.record({str(path)!r}): train(*model(), 5)\nanswer(peaks=peaks())"
    )
    trace = load_trace(path)
    recorded = trace.recorded
    assert recorded is not None
    assert check([trace]).problems == ()
    assert trace.missing == ()
    assert [step.phase for step in recorded.steps] == ["setup"] + 5 * ["train"]
    assert len({step.allocations for step in recorded.steps[2:]}) == 1
    tops = [(step.peak_allocated_bytes or 0, step.peak_reserved_bytes or 0) for step in recorded.steps]
    assert [max(top) for top in zip(*tops, strict=True)] == run.peaks[:2]
    found = categories(trace)
    weights = 3 * (512 * 512 + 512) * 4
    assert found["parameters"] == weights
    assert found["gradients"] == 5 * weights
    assert found["optimizer state"] == 2 * weights
    assert found["inputs"] == 5 * 64 * 512 * 4
    assert recorded.samples[-1].holdings
    frames = {frame.filename for stack in trace.stacks for frame in stack}
    assert not [name for name in frames if "/hotbed/recording/" in name]


def test_a_recorded_program_draws_all_of_its_numbers(on_phantom: Server, path: Path) -> None:
    """Unlike in fit, where the numbers of large weights on the CPU are repeated."""
    run = on_phantom(
        PRELUDE
        + f"""
def drawn():
    torch.manual_seed(1)
    return [torch.empty(1 << 22).normal_(), torch.empty(1 << 22).uniform_(), torch.rand(4)]
before = drawn()
recorder = begin({str(path)!r})
during = drawn()
recorder.stop()
answer(alike=[bool((a == b).all()) for a, b in zip(before, during)], values=len(during[0].unique()))
"""
    )
    assert run.alike == [True] * 3
    # Of so many floats some are alike by chance; repeated ones would have a quarter as many values.
    assert run.values > 1 << 21


def test_gaps_are_bridged_and_counters_know_the_steps_in_them(on_phantom: Server, path: Path) -> None:
    program = f"""
recorder = begin({str(path)!r}, first_steps=3, ring_entries=150, every=13)
net, optimizer = model()
kept = []
train(net, optimizer, 60, lambda step: step < 59 and kept.append(torch.empty((step % 7 + 1) << 20, device="cuda")))
recorder.stop()
answer(peaks=peaks())
"""
    run = on_phantom(PRELUDE + program)
    trace = load_trace(path)
    recorded = trace.recorded
    assert recorded is not None
    assert len(recorded.gaps) >= 4
    assert check([trace]).problems == ()
    allocs = int((trace.events.action == Action.ALLOC).sum())
    made_up = sum(
        int((trace.events.action[gap.event - gap.bridged_events : gap.event] == Action.ALLOC).sum())
        for gap in recorded.gaps
    )
    assert allocs - made_up + sum(gap.allocations for gap in recorded.gaps) == run.peaks[2]
    # 236 MiB were kept, most of it in gaps: none of that was made in the forward of a step that is there.
    assert categories(trace)["activations"] < 60 * MIB
    training = [step for step in recorded.steps if step.phase == "train"]
    assert len(training) == 60
    assert len([step for step in training if step.first_event is None]) > 30
    assert max(step.peak_reserved_bytes or 0 for step in training) == run.peaks[1]
    assert max(step.peak_allocated_bytes or 0 for step in training) == run.peaks[0]


def test_what_is_in_the_file_is_readable_at_any_time_and_compact_it_is_the_same(
    on_phantom: Server, path: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.hbt"
    copy = f"lambda step: step == 8 and shutil.copy({str(path)!r}, {str(cut)!r})"
    on_phantom(PRELUDE + f"with hotbed.record({str(path)!r}): train(*model(), 9, {copy})\nanswer()")
    killed, whole = load_trace(cut), load_trace(path)
    assert killed.recorded is not None
    assert whole.recorded is not None
    assert (killed.recorded.complete, whole.recorded.complete) == (False, True)
    assert "was not closed" in killed.missing[-1]
    # The last reading was after the eighth step.
    assert [step.phase for step in killed.recorded.steps] == ["setup"] + 8 * ["train"]
    write_compact(cut, [whole])
    again = load_trace(cut)
    assert again.recorded == whole.recorded
    assert (again.events.category == whole.events.category).all()
    assert (again.segments, again.stacks, again.missing) == (whole.segments, whole.stacks, whole.missing)


def test_an_out_of_memory_error_is_noted_as_it_was_and_raised_as_ever(on_phantom: Server, path: Path) -> None:
    program = f"""
try:
    with hotbed.record({str(path)!r}):
        held = torch.empty(10 * GIB, dtype=torch.uint8, device="cuda")
        torch.empty(7 * GIB, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    answer(text=str(error))
"""
    run = on_phantom(PRELUDE + program, total=16 << 30)
    trace = load_trace(path)
    assert trace.recorded is not None
    (failure,) = trace.recorded.failures
    assert failure.message == run.text
    assert (failure.requested_bytes, failure.allocated_bytes) == (7 << 30, 10 << 30)
    assert (failure.total_bytes, failure.limit_bytes) == (16 << 30, None)
    assert failure.event is not None
    assert trace.events.action[failure.event] == Action.OOM
    assert failure.where is not None
    assert failure.where.line == PRELUDE.count("\n") + 5


def test_steps_by_hand_count_alone_and_a_process_can_be_recorded_again(
    on_phantom: Server, path: Path
) -> None:
    program = f"""
net, optimizer = model()
hotbed.record.start({str(path)!r})
train(net, optimizer, 3)
hotbed.record.stop()
hotbed.record.start({str(path)!r})
hotbed.record.step()
train(net, optimizer, 4, lambda step: step % 2 and hotbed.record.step())
try:
    hotbed.record.start("other.hbt")
except hotbed.errors.UsageError as error:
    answer(refused=error.message)
hotbed.record.stop()
hotbed.record.step()
"""
    run = on_phantom(PRELUDE + "import hotbed.errors\n" + program)
    assert str(path) in run.refused
    trace = load_trace(path)
    assert trace.recorded is not None
    assert check([trace]).problems == ()
    assert [step.phase for step in trace.recorded.steps].count("train") == 3
    assert any("recording began" in sentence for sentence in trace.missing)


def test_caches_that_modules_keep_have_a_category_of_their_own(on_phantom: Server, path: Path) -> None:
    program = f"""
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.past = torch.nn.Linear(64, 64), {{"keys": [], "values": []}}

    def forward(self, token):
        for kept in self.past.values():
            kept.append(self.project(token))
        return token

with hotbed.record({str(path)!r}):
    with torch.no_grad():
        net = Attention().eval().cuda()
        for _ in range(5):
            net(torch.zeros(8, 64, device="cuda"))
answer()
"""
    on_phantom(PRELUDE + program)
    found = categories(load_trace(path))
    assert found["kv cache"] == 10 * 8 * 64 * 4
    assert found["parameters"] == (64 * 64 + 64) * 4


def test_a_full_disk_ends_the_recording_and_not_the_program(on_phantom: Server, path: Path) -> None:
    program = f"""
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hotbed.record.start({str(path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
train(*model(), 12)
hotbed.record.stop()
answer(done=True)
"""
    run = on_phantom(PRELUDE + program)
    assert run.done
    assert run.stderr.count("hotbed: recording to") == 1
    assert load_trace(path).recorded is not None


def test_a_program_that_records_by_itself_gets_its_snapshot(on_phantom: Server, path: Path) -> None:
    program = f"""
hotbed.record.start({str(path)!r})
torch.cuda.memory._record_memory_history(max_entries=10)
held = torch.empty(MIB, device="cuda")
mine = torch.cuda.memory._snapshot()
torch.cuda.memory._record_memory_history(enabled=None)
more = torch.empty(MIB, device="cuda")
hotbed.record.stop()
answer(allocs=[entry["size"] for entry in mine["device_traces"][0] if entry["action"] == "alloc"])
"""
    assert on_phantom(PRELUDE + program).allocs == [4 * MIB]
    assert categories(load_trace(path))
    assert int((load_trace(path).events.action == Action.ALLOC).sum()) == 2


def test_children_never_write(on_phantom: Server, path: Path) -> None:
    program = f"""
hotbed.record.start({str(path)!r})
train(*model(), 1)
before = Path({str(path)!r}).read_bytes()
child = os.fork()
if child == 0:
    hotbed.record.step()
    hotbed.record.stop()
    os._exit(0)
os.waitpid(child, 0)
answer(same=Path({str(path)!r}).read_bytes() == before)
hotbed.record.stop()
"""
    assert on_phantom(PRELUDE + program).same
    assert load_trace(path).recorded is not None


def test_reading_the_history_imports_nothing(on_phantom: Server, path: Path) -> None:
    """torch imports its compiler to name lines; on the recorder's thread that breaks an import that is under way."""
    program = f"""
recorder = begin({str(path)!r})
torch.ones(8, device="cuda")
names, asked = vars(torch), []
names.pop("_inductor", None)
lazily = names["__getattr__"]
names["__getattr__"] = lambda name: asked.append(name) or lazily(name)
recorder.stop()
answer(asked=asked, left="_inductor" in names)
"""
    run = on_phantom(PRELUDE + program)
    assert "_inductor" not in run.asked
    assert not run.left


def test_maps_of_memory_leave_the_interpreter_as_it_was(on_phantom: Server) -> None:
    """torch 2.11 to 2.14 gives away a reference of True or False a map; before Python 3.12 some hundred end the program."""
    result = on_phantom(
        PRELUDE
        + """
x = torch.zeros(1000, device="cuda")
before = sys.getrefcount(True), sys.getrefcount(False)
for _ in range(60):
    hotbed.summary()
answer(lost=[a - sys.getrefcount(b) for a, b in zip(before, (True, False))])
"""
    )
    assert max(result.lost) < 30


def test_no_observer_of_failures_is_no_failure(on_phantom: Server) -> None:
    """The cudaMallocAsync backend refuses one."""
    result = on_phantom(
        PRELUDE
        + """
from hotbed.recording.failures import Failures
def refuse(_): raise RuntimeError("cudaMallocAsync does not yet support attachOutOfMemoryObserver")
torch._C._cuda_attach_out_of_memory_observer = refuse
answer(count=Failures(torch, lambda *_: None).count)
"""
    )
    assert result.count == 0
