"""Categories of steps in which a recorder noted no addresses: what torch says of them, or unknown, never wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.phantom.test_record import PRELUDE

from hotbed.trace import Action, load_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.phantom.conftest import Server

    from hotbed.trace import Trace

pytestmark = pytest.mark.torch
STEPS = 40
PROGRAM = (
    PRELUDE
    + """
seen = []
def grads(net):
    return [(p.grad.data_ptr(), p.grad.nbytes) for p in net.parameters() if p.grad is not None]
"""
)


def by_step(trace: Trace) -> list[Counter[str]]:
    """Bytes that were allocated for each category in each training step."""
    events = trace.events
    found: list[Counter[str]] = [Counter() for _ in range(int(events.step.max()) + 1)]
    for event in np.flatnonzero((events.action == Action.ALLOC) & (events.step >= 0)).tolist():
        found[events.step[event]][trace.strings[events.category[event]]] += int(events.size[event])
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.hbt"


def test_every_step_has_the_categories_of_the_noted_ones(on_phantom: Server, path: Path) -> None:
    program = f"""
recorder = begin({str(path)!r}, first_steps=3, budget=1e-9)
net, optimizer = model()
train(net, optimizer, {STEPS}, lambda step: seen.append(sum(size for _, size in grads(net))))
recorder.stop()
answer(grads=seen)
"""
    run = on_phantom(PROGRAM + program)
    trace = load_trace(path)
    found = by_step(trace)
    assert [step["gradients"] for step in found] == run.grads
    assert [step["inputs"] for step in found] == [64 * 512 * 4] * STEPS
    assert found[2]["activations"] >= 2 * 64 * 512 * 4
    assert found[2:] == [found[2]] * (STEPS - 2)
    assert any("no addresses were noted" in sentence for sentence in trace.missing)


@pytest.mark.parametrize("back", ["net.train()", "pass"])
def test_an_evaluation_is_found_in_steps_without_notes(on_phantom: Server, path: Path, back: str) -> None:
    program = f"""
def evaluate(step):
    seen.append(sum(size for _, size in grads(net)))
    if step == 30:
        net.eval()
        with torch.no_grad():
            for _ in range(3):
                net(torch.ones(64, 512, device="cuda"))
        {back}

recorder = begin({str(path)!r}, first_steps=3, budget=1e-9)
net, optimizer = model()
train(net, optimizer, {STEPS}, evaluate)
recorder.stop()
answer(grads=seen)
"""
    run = on_phantom(PROGRAM + program)
    trace = load_trace(path)
    assert trace.recorded is not None
    steps = trace.recorded.steps
    (evaluation,) = (step for step in steps if step.phase == "eval")
    assert (evaluation.number, evaluation.allocations) == (31, 3 * 4)
    assert [step["gradients"] for step in by_step(trace)] == run.grads
    assert len([step for step in steps if step.phase == "train"]) == STEPS


@pytest.mark.parametrize(
    "change",
    [
        "net[0].requires_grad_(True)",
        "net[0].requires_grad_(True), net[1].requires_grad_(False)",
        "setattr(net, '1', torch.nn.Linear(512, 512).cuda().requires_grad_(False))",
    ],
)
def test_what_changes_between_notes_is_unknown_and_not_wrong(
    on_phantom: Server, path: Path, change: str
) -> None:
    program = f"""
def after(step):
    seen.append(grads(net))
    if step == 20:
        {change}

recorder = begin({str(path)!r}, first_steps=3, budget=1e-9)
net, optimizer = model()
net[0].requires_grad_(False)
# As many rows as columns: gradients of weights and of activations are of one size.
for step in range({STEPS}):
    optimizer.zero_grad()
    net(torch.ones(512, 512, device="cuda")).sum().backward()
    optimizer.step()
    after(step)
recorder.stop()
answer(grads=seen)
"""
    run = on_phantom(PROGRAM + program)
    trace = load_trace(path)
    events = trace.events
    told = trace.strings.index("gradients")
    for step in range(STEPS):
        made = (events.action == Action.ALLOC) & (events.step == step)
        true = {address for address, _ in run.grads[step]}
        assert set(events.address[made & (events.category == told)].tolist()) <= true
    found = by_step(trace)
    assert found[19]["gradients"] == sum(size for _, size in run.grads[19])
    assert found[21]["gradients"] + found[21]["other"] >= sum(size for _, size in run.grads[21])
