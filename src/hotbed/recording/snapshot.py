"""torch's memory snapshot, without the imports that torch makes for it."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def snapshot(torch: Any) -> dict[str, Any]:
    """torch.cuda.memory._snapshot() as the program's own call would give it."""
    with _no_inductor(torch):
        taken: dict[str, Any] = torch.cuda.memory._snapshot()
    return taken


@contextmanager
def _no_inductor(torch: Any) -> Iterator[None]:
    """Where the program has not imported all of torch._inductor, nothing stands for it.

    To name the lines of compiled code torch asks for `torch._inductor`, which imports it: a second for nothing, and on
    another thread than one that is importing it already the two break each other's imports.
    """
    names = torch.__dict__
    if "_inductor" in names:
        yield
        return
    nothing = names["_inductor"] = SimpleNamespace()
    try:
        yield
    finally:
        if names.get("_inductor") is nothing:
            del names["_inductor"]
