"""hotbed.guard in programs that misbehave, and in their innocent twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.trace import load_trace
from hotbed.units import GIB, MIB

if TYPE_CHECKING:
    from pathlib import Path

    from tests.phantom.conftest import Server

BEGIN = """
import gc, sys, time, warnings, hotbed
from torch.cuda import empty_cache
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step(rows=2048):
    model(torch.empty(rows, 1024, device="cuda")).sum().backward()
    optimizer.step(); optimizer.zero_grad()
def judged():
    return {site.kind: site.judgement for site in hotbed.guard.report().sites}
"""
LOOP = """
for _ in range(40):
    step(); empty_cache()
"""


def warnings_in(stderr: str) -> list[str]:
    """What the guard said, one entry for each of its lines."""
    return [line for line in stderr.splitlines() if line.startswith("hotbed guard:")]


def test_a_cache_emptied_each_step_is_told_once_with_line_and_cost(on_phantom: Server) -> None:
    result = on_phantom(
        BEGIN
        + "hotbed.guard()"
        + LOOP
        + "site, = hotbed.guard.report().sites\n"
        + "answer(calls=site.calls, line=site.where.line, judgement=site.judgement, again=site.again_bytes)"
    )
    told = warnings_in(result.stderr)
    assert f"program:{result.line}: torch.cuda.empty_cache() was called" in told[0]
    assert sum("was called" in line for line in told) == 1
    assert (result.calls, result.judgement) == (40, "useless")
    assert result.again > 40 * MIB
    assert "cudaMalloc took" in told[1]


def test_skip_does_not_carry_out_what_is_useless(on_phantom: Server) -> None:
    result = on_phantom(
        BEGIN
        + "hotbed.guard('skip')"
        + LOOP
        + "site, = hotbed.guard.report().sites; kept = reserved()\n"
        + "hotbed.guard.stop(); empty_cache()\n"
        + "answer(calls=site.calls, skipped=site.skipped, kept=kept, after=reserved())"
    )
    assert 20 < result.skipped < result.calls == 40
    assert result.kept > result.after


INNOCENT = {
    "once": "for _ in range(20): step()\nempty_cache()",
    "after the warm-up": "for _ in range(3): step(); empty_cache()\nfor _ in range(20): step()",
    "between training and evaluation": """
for _ in range(10):
    for _ in range(3): step()
    empty_cache()
    with torch.no_grad():
        for _ in range(3): torch.empty(300 << 20, device="cuda", dtype=torch.uint8)
    empty_cache()
""",
    "torch's own": """
static = torch.zeros(8, device="cuda")
for _ in range(12):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): static + 1
""",
}


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in INNOCENT.items()])
@pytest.mark.parametrize("policy", ["warn", "skip"])
def test_nothing_is_said_of_the_innocent(on_phantom: Server, body: str, policy: str) -> None:
    result = on_phantom(
        BEGIN
        + f"hotbed.guard({policy!r})\n"
        + body
        + "\nanswer(skipped=sum(site.skipped for site in hotbed.guard.report().sites))"
    )
    assert not warnings_in(result.stderr)
    assert not result.skipped


def test_near_the_limit_calls_are_carried_out_and_not_blamed(on_phantom: Server) -> None:
    program = (
        BEGIN + "held = torch.empty(900 << 20, device='cuda', dtype=torch.uint8); hotbed.guard('skip')" + LOOP
    )
    result = on_phantom(program + "answer(judged=judged())", total=GIB + 60 * MIB)
    assert result.judged == {"empty_cache": "limit"}
    assert not warnings_in(result.stderr)


def test_an_announced_load_empties_the_cache_that_was_kept(on_phantom: Server) -> None:
    result = on_phantom(
        BEGIN
        + "hotbed.guard('skip')"
        + LOOP
        + "before = reserved(); hotbed.guard.loading((16 << 30) - (100 << 20)); after = reserved()\n"
        + "answer(before=before, after=after)"
    )
    assert result.after < result.before


def test_collections_are_judged_by_what_they_free(on_phantom: Server) -> None:
    loop = """
class Cycle: pass
def cycle():
    one = Cycle(); one.me, one.held = one, torch.empty(4 << 20, device="cuda")
for _ in range(12):
    {}
    gc.collect()
answer(judged=judged())
"""
    useless = on_phantom(BEGIN + "hotbed.guard()" + loop.format("step()"))
    useful = on_phantom(BEGIN + "hotbed.guard()" + loop.format("cycle()"))
    assert useless.judged == {"gc.collect": "useless"}
    assert useful.judged == {"gc.collect": "useful"}
    assert not warnings_in(useful.stderr)


def test_stopping_puts_everything_back(on_phantom: Server) -> None:
    result = on_phantom(
        BEGIN
        + """
places = lambda: (torch._C._cuda_emptyCache, gc.collect, sys.excepthook, torch.cuda.memory._record_memory_history)
before = places()
with hotbed.guard(stacks=True):
    within = places()
hotbed.guard.stop()
answer(changed=sum(a is not b for a, b in zip(before, within)), back=before == places(),
       history=torch._C._cuda_isHistoryEnabled())
"""
    )
    assert result.changed == 4
    assert result.back
    assert not result.history


def test_a_forked_child_is_left_alone(on_phantom: Server) -> None:
    result = on_phantom(
        BEGIN
        + "import os\nhotbed.guard('skip')"
        + LOOP
        + """
child = os.fork()
if not child:
    for _ in range(3): gc.collect()
    os._exit(0)
answer(status=os.waitpid(child, 0)[1])
"""
    )
    assert result.status == 0


OOM = """
import threading
hotbed.guard(folder={folder!r}, stacks={stacks})
held = []
def fill():
    while True: held.append(torch.empty(256 << 20, device="cuda", dtype=torch.uint8))
"""


@pytest.mark.parametrize("stacks", [False, True])
def test_running_out_of_memory_gives_a_verdict_and_a_file_and_the_same_error(
    on_phantom: Server, tmp_path: Path, stacks: bool
) -> None:
    result = on_phantom(
        BEGIN
        + OOM.format(folder=str(tmp_path), stacks=stacks)
        + """
thread = threading.Thread(target=fill); thread.start(); thread.join()
answer(done=True)
""",
        total=2 * GIB,
    )
    assert "OutOfMemoryError: CUDA out of memory" in result.stderr
    told = "\n".join(warnings_in(result.stderr))
    assert "oom/capacity" in told
    assert "held by list" in told
    (path,) = tmp_path.glob("hotbed-oom-*.hbt")
    trace = load_trace(path)
    recorded = trace.recorded
    assert (len(trace.events) > 0) == stacks
    assert sum(segment.size_bytes for segment in trace.segments) > GIB
    assert recorded is not None
    assert recorded.failures[0].requested_bytes == 256 * MIB
    assert "out of memory" in recorded.failures[0].message


def test_errors_that_the_program_survives_make_no_noise(on_phantom: Server, tmp_path: Path) -> None:
    result = on_phantom(
        BEGIN
        + OOM.format(folder=str(tmp_path), stacks=False)
        + """
for _ in range(5):
    try: fill()
    except torch.cuda.OutOfMemoryError: held.clear()
answer(count=hotbed.guard.report().out_of_memory)
""",
        total=2 * GIB,
    )
    assert result.count == 5
    assert not warnings_in(result.stderr)
    assert not list(tmp_path.iterdir())


def test_growth_from_step_to_step_is_told_with_its_line(on_phantom: Server) -> None:
    loop = """
hotbed.guard()
losses = []
for _ in range(100):
    step(64); {}
answer(growing=hotbed.guard.report().growing)
"""
    leaking = on_phantom(
        BEGIN + loop.format("losses.append(torch.empty(4 << 20, device='cuda'))"), total=2 * GIB
    )
    steady = on_phantom(
        BEGIN + loop.format("losses[:] = [torch.empty(4 << 20, device='cuda')]"), total=2 * GIB
    )
    assert "grows by 16.0 MiB a step" in leaking.growing[0]
    assert "program:" in leaking.growing[0]
    assert steady.growing == []
    assert not warnings_in(steady.stderr)


def test_the_summary_of_a_process_tells_its_memory_from_that_of_others(on_phantom: Server) -> None:
    result = on_phantom(
        BEGIN
        + "held = [torch.empty(64 << 20, device='cuda', dtype=torch.uint8) for _ in range(4)]; del held[1:]\n"
        + "now = hotbed.summary()\n"
        + "answer(text=str(now), parts=[now.condition.allocated_bytes, now.condition.reserved_bytes], "
        + "whole=now.condition.whole_bytes, torch=[allocated(), reserved()])"
    )
    assert result.parts == result.torch
    assert result.whole >= 192 * MIB
    assert "no need to act" in result.text


def test_what_another_process_holds_is_named_by_torch_and_by_the_verdict(
    on_phantom: Server, tmp_path: Path
) -> None:
    result = on_phantom(
        BEGIN
        + OOM.format(folder=str(tmp_path), stacks=False)
        + "thread = threading.Thread(target=fill); thread.start(); thread.join(); answer(now=str(hotbed.summary()))",
        total=8 * GIB,
        others=5 * GIB,
    )
    assert "Process 4194304 has 5.00 GiB memory in use" in result.stderr
    assert "oom/other-process" in "\n".join(warnings_in(result.stderr))
    assert "5.0 GiB  of other processes" in result.now


def test_where_others_wait_for_memory_emptying_the_cache_is_in_order(on_phantom: Server) -> None:
    result = on_phantom(
        BEGIN + "hotbed.guard('skip')" + LOOP + "answer(judged=judged())",
        total=2 * GIB,
        others=GIB + 500 * MIB,
    )
    assert result.judged == {"empty_cache": "limit"}
    assert not warnings_in(result.stderr)
