"""Sorts the tensors of a walk by who owns them: every named container, attribute and variable on the way to them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hotbed.recording.naming import Names
from hotbed.recording.reach import is_cache
from hotbed.recording.storages import storages

if TYPE_CHECKING:
    from hotbed.recording.naming import Name
    from hotbed.recording.reach import Walk
    from hotbed.recording.storages import Place

_DEEPEST = 40


@dataclass
class Owner:
    """What is found of one owner on one device; `word` says what it is: "list", "Trainer"."""

    name: Name
    word: str
    places: set[Place] = field(default_factory=set)
    tensors: set[int] = field(default_factory=set)
    """their ids"""
    with_graph: list[Any] = field(default_factory=list)
    """those that have a grad_fn"""


class Owners:
    """`by_device`: device → path → owner. `known`: every storage that a name reaches. Keeps references: drop it soon."""

    def __init__(self, walk: Walk) -> None:
        self._walk, self._names = walk, Names(walk)
        self._above: dict[int, list[tuple[Name, str]]] = {}
        self.by_device: dict[int, dict[str, Owner]] = {}
        self.known: set[Place] = set()
        places: dict[int, list[Place]] = {}
        for tensor, parent in walk.tensors:
            if id(tensor) not in places:
                places[id(tensor)] = _places(tensor)
                self.known.update(places[id(tensor)])
            if places[id(tensor)]:
                self._add(tensor, parent, places[id(tensor)])

    def _add(self, tensor: Any, parent: int, places: list[Place]) -> None:
        owners = self._on_the_way(parent)
        if not isinstance(self._walk.objects[parent], (list, tuple, deque, set)) or not owners:
            name = self._names.child(tensor, parent)
            owners = [(name, "tensor"), *owners] if name.row else owners
        grown = tensor.requires_grad and not tensor.is_leaf
        for name, word in owners:
            for place in places:
                owner = self.by_device.setdefault(place[0], {}).setdefault(name.path, Owner(name, word))
                owner.places.add(place)
                if id(tensor) not in owner.tensors:
                    owner.tensors.add(id(tensor))
                    if grown:
                        owner.with_graph.append(tensor)

    def _on_the_way(self, at: int) -> list[tuple[Name, str]]:
        """The owners from the object at index `at` up to the root."""
        if at in self._above:
            return self._above[at]
        found: list[tuple[Name, str]] = []
        begun, depth = at, 0
        while at >= 0 and depth < _DEEPEST:
            name = self._names.of(at)
            if name.row:
                item = self._walk.objects[at]
                found.append((name, _word(item)))
            at, depth = self._walk.parents[at], depth + 1
        self._above[begun] = found
        return found


def _word(item: Any) -> str:
    if is_cache(item):
        return "functools cache"
    if isinstance(item, deque) and item.maxlen is not None:
        return f"deque of at most {item.maxlen}"
    return type(item).__name__


def _places(tensor: Any) -> list[Place]:
    found = list(storages(tensor))
    if found and tensor.requires_grad and tensor.is_leaf:
        found += storages(tensor.grad)
    return found
