"""Who keeps tensors, as seen from within a program: names, bytes, and that looking changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import hotbed

if TYPE_CHECKING:
    from tests.phantom.conftest import Server

SOURCE = hotbed.__file__.rpartition("/hotbed/")[0]
BEGIN = f"""
import gc, sys, types, weakref
sys.path.insert(0, {SOURCE!r})
from hotbed.recording.holders import Holders
main = sys.modules["__main__"]
holders = Holders(torch)
def mib(n=1):
    return torch.empty(n * MIB, dtype=torch.uint8, device="cuda")
def look(**how):
    rows = holders.sample(10.0, **how).get(0, ())
    assert holders.trouble is None, holders.trouble
    return {{(row.kind, row.path): (row.tensors, row.bytes // MIB, row.with_graph) for row in rows}}
def told(rows):
    answer(rows=[[*key, *value] for key, value in rows.items()])
"""


def looked(on_phantom: Server, program: str) -> dict[tuple[str, str], tuple[int, int, int]]:
    rows = on_phantom(BEGIN + program).rows
    return {(kind, path): tuple(rest) for kind, path, *rest in rows}


@pytest.mark.torch
def test_a_storage_counts_once_for_each_of_its_owners(on_phantom: Server) -> None:
    rows = looked(
        on_phantom,
        """
whole = mib(8)
main.views = [whole[:MIB], whole[MIB:], whole]
main.log = {"kept": [mib(2)], 3: mib(1)}
told(look())
""",
    )
    assert rows["container", "__main__.views"] == (3, 8, 0)
    assert rows["container", "__main__.log['kept']"] == (1, 2, 0)
    assert rows["container", "__main__.log"] == (2, 3, 0)
    assert rows["variable", "__main__.whole"] == (1, 8, 0)


@pytest.mark.torch
def test_local_variables_closures_slots_and_exceptions_have_names(on_phantom: Server) -> None:
    rows = looked(
        on_phantom,
        """
class Slotted:
    __slots__ = ("memory",)
def hooked():
    inner = mib(2)
    return lambda: inner
def fails():
    big = mib(3)
    raise ValueError
def run():
    held, item, closed = [mib(1)], Slotted(), hooked()
    item.memory = mib(4)
    try:
        fails()
    except ValueError as error:
        kept = error
    told(look())
run()
""",
    )
    assert rows["container", "local `held` of run()"][:2] == (1, 1)
    assert rows["attribute", "Slotted.memory"][:2] == (1, 4)
    assert rows["closure", "closure `inner` of hooked.<locals>.<lambda>()"][:2] == (1, 2)
    assert rows["traceback", "local `kept` of run()"][:2] == (1, 3)


@pytest.mark.torch
def test_dead_cycles_are_told_from_what_native_code_keeps_and_stay_as_they_are(on_phantom: Server) -> None:
    rows = looked(
        on_phantom,
        """
gc.disable()
ended = []
class Cycle:
    def __init__(self):
        self.memory, self.me = mib(8), self
    def __del__(self):
        ended.append(1)
watch = weakref.ref(Cycle())
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x * 2)
        return x.sum()
    @staticmethod
    def backward(ctx, grad):
        return grad
main.out = Op.apply(torch.ones(MIB, device="cuda", requires_grad=True))
rows = look(garbage=True)
assert watch() is not None and not ended and not gc.isenabled()
told(rows)
""",
    )
    assert rows["cycle", "Cycle → Cycle"] == (1, 8, 0)


@pytest.mark.torch
def test_looking_leaves_no_reference_behind(on_phantom: Server) -> None:
    program = """
main.held = [mib(4)]
def run():
    mine = mib(2)
    look()
    before = allocated()
    del mine
    main.held.clear()
    answer(freed=before - allocated(), graph_kept=None)
run()
"""
    assert on_phantom(BEGIN + program).freed == 6 << 20


@pytest.mark.torch
def test_a_graph_counts_what_it_alone_keeps_and_hooks_are_not_run(on_phantom: Server) -> None:
    rows = looked(
        on_phantom,
        """
ran = []
weight = torch.ones(MIB, device="cuda", requires_grad=True)
main.plain = (weight * 2).exp().sum()
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: ran.append(1)):
    main.packed = (weight * 3).exp().sum()
rows = look()
assert not ran
told(rows)
""",
    )
    graphs = {path: values[1] for (kind, path), values in rows.items() if kind == "graph"}
    # torch before 2.10 does not tell which saved tensors a hook has packed.
    assert graphs in (
        {"__main__.plain": 4, "__main__.packed": 0},
        {"__main__.plain": 0, "__main__.packed": 0},
    )
