"""What autograd graphs keep on the GPU: the storages of tensors that they saved for a backward pass."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from hotbed.recording.storages import storages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hotbed.recording.storages import Place


class Graph(NamedTuple):
    """`nodes`: how many were seen; `whole`: there are no more. `saved`: the storages that they keep."""

    nodes: int
    whole: bool
    saved: set[Place]


class SavedGraphs:
    """Walks graphs without running hooks of the program, which may compute: values that hooks packed are not looked at."""

    def __init__(self, torch: Any) -> None:
        self._readable = hasattr(torch._C._autograd.SavedTensor, "data")
        self._packed = False
        self._names: dict[type, tuple[str, ...]] = {}
        if not self._readable:
            self._notice_hooks(torch._C._autograd)

    def _notice_hooks(self, autograd: Any) -> None:
        """This torch does not tell a saved tensor from one that a hook has packed: look at none once hooks were used."""
        original = autograd._push_saved_tensors_default_hooks

        @functools.wraps(original)
        def push(*arguments: Any) -> Any:
            self._packed = True
            return original(*arguments)

        autograd._push_saved_tensors_default_hooks = push

    def behind(self, tensors: Iterable[Any], most: int) -> Graph:
        """The graphs of `tensors`, up to `most` nodes, the newest first."""
        todo = [tensor.grad_fn for tensor in tensors]
        todo = [node for node in reversed(todo) if node is not None]
        # Keeps the nodes: their ids are theirs only as long as they live.
        seen = {id(node): node for node in todo}
        saved: set[Place] = set()
        at = 0
        while at < len(todo) and at < most:
            node = todo[at]
            at += 1
            saved.update(place for tensor in self._saved(node) for place in storages(tensor))
            for following, _ in node.next_functions:
                if following is not None and id(following) not in seen:
                    seen[id(following)] = following
                    todo.append(following)
        return Graph(at, at == len(todo), saved)

    def _saved(self, node: Any) -> Iterator[Any]:
        kind = type(node)
        if kind not in self._names:
            # Nodes in Python (torch.autograd.Function) call it saved_tensors.
            prefix = "_raw_saved_" if self._readable else ("_saved_", "saved_tensors")
            self._names[kind] = tuple(name for name in dir(kind) if name.startswith(prefix))
        if not self._packed:
            for name in self._names[kind]:
                yield from self._unpacked(node, name)

    def _unpacked(self, node: Any, name: str) -> Iterator[Any]:
        try:
            value = getattr(node, name)
            for part in value if isinstance(value, tuple) else (value,):
                tensor = part.data if self._readable and part is not None else part
                if hasattr(tensor, "untyped_storage"):
                    yield tensor
        except RuntimeError:
            # Freed by a backward pass, or changed in place since.
            return
