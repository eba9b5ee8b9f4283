"""What is said about memory that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotbed.findings.growth import FEWEST_ENDS
from hotbed.findings.wording import counted, line_words
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.findings.case import Case
    from hotbed.findings.growth import Growth
    from hotbed.findings.keepers import Keeper

FIXES: Final = {
    "leak/growing-container": "keep what is needed on the host (.item(), .cpu()), or empty the container when it has been used",
    "leak/retained-graph": "store a number, loss.item(), or loss.detach(): each tensor with a grad_fn keeps its whole graph; "
    "detach a state that is carried from step to step",
    "leak/reference-cycle": "break the cycle: weakref for the way back, no `self` in a closure that is stored on `self`; or drop the "
    "reference when the object is done. gc.collect() frees it, but late",
    "leak/traceback": "try again behind the except block, not in it; keep str(error), not the exception, or set error.__traceback__ = None",
    "leak/pending-stream": "let the side stream finish before the block is freed (current_stream().wait_stream(side)), or let the CPU "
    "run ahead less; TORCH_NCCL_AVOID_RECORD_STREAMS=1 with old torch",
    "leak/side-stream-cache": "do the set-up on the default stream, or call torch.cuda.empty_cache() once after it",
    "leak/unknown-owner": "hotbed record names the owner; gc.get_referrers() on one of these tensors does too",
    "memory/still-growing": "record more steps to tell whether it ends",
}


def title(code: str, growth: Growth, keeper: Keeper) -> str:
    """One line: who keeps how much more each step."""
    more = f"{format_size(keeper.per_step_bytes)} more each step"
    if growth.axis == "events":
        more = f"ever more, {format_size(keeper.bytes)} so far"
    owner = keeper.holding.owner if keeper.holding is not None else "nobody the trace knows"
    if code == "memory/still-growing":
        return f"{more} so far, which may end: {owner}"
    if code == "leak/retained-graph":
        return f"{owner} keeps tensors with their autograd graphs: {more}"
    if code == "leak/reference-cycle":
        return f"{owner} waits for the garbage collector: {more}"
    if code == "leak/unknown-owner":
        return f"{more}, and no name of the program is known to keep it"
    return f"{owner} keeps {more}"


def evidence(case: Case, growth: Growth, keeper: Keeper, left: int | None) -> Iterator[str]:
    """Sentences with numbers, the strongest first."""
    first, last = growth.settled, -1
    step = "part" if growth.axis == "events" else "step"
    yield (
        f"allocated at the end of {step} {growth.numbers[first]}: {format_size(int(growth.live[first]))}, of {step} "
        f"{growth.numbers[last]}: {format_size(int(growth.live[last]))}; the median slope over all pairs of "
        f"{len(growth.ends) - first} ends is {format_size(growth.per_step_bytes)} a {step}"
    )
    for line in keeper.lines[:3]:
        where = (
            "lines without a stack"
            if line.frame is None
            else line_words(line.frame.filename, line.frame.line)
        )
        if line.course == "enlarging":
            yield f"{where} replaces its block by a larger one at each step: {format_size(line.bytes)} so far"
        else:
            yield (
                f"{where}: {counted(len(line.kept), 'block')} made since then are still held, "
                f"{line.blocks_per_step:.2g} a {step}, {format_size(line.bytes)}"
            )
    if keeper.holding is not None:
        yield from _seen(case, keeper)
    if left is not None:
        yield f"at this pace the GPU is full after {left:,} more steps"
    if any(line.course == "slowing" for line in keeper.lines):
        yield "the growth is slowing: caches that fill up look like this"


def _seen(case: Case, keeper: Keeper) -> Iterator[str]:
    """What the samples say of the owner, along the run."""
    path = keeper.holding.path if keeper.holding is not None else None
    seen = []
    samples = case.recorded.samples
    for sample in samples:
        rows = [row for row in sample.holdings if row.path == path]
        plain = [row.tensors for row in rows if row.kind != "graph"]
        if rows:
            last = "the end" if sample is samples[-1] else "an error"
            at = last if sample.step is None else f"step {sample.step}"
            seen.append(f"{max(plain or [row.tensors for row in rows]):,} at {at}")
    if len(seen) > 1:
        yield f"tensors of `{path}`: {', '.join(seen[-5:])}"


def needed_steps(growth: Growth) -> int:
    """How many more steps it takes before growth can be told: the warm-up is a quarter of them."""
    return max(round((FEWEST_ENDS - (len(growth.ends) - growth.settled)) / 0.75), 1)
