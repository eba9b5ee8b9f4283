"""Tells whether tensors that no name reaches are garbage: held by objects that refer to each other and wait for a collection.

Counts references as Python's collector does, and frees nothing: no finalizer runs, no weak reference is cleared.
"""

from __future__ import annotations

import gc
import sys
import time
from types import CellType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from hotbed.recording.naming import Scope
from hotbed.recording.reach import local_variables

if TYPE_CHECKING:
    from collections.abc import Set

_CHUNK = 256
_MOST_LEVELS = 40
_MOST_MEMBERS = 200_000


class Cycle(NamedTuple):
    """Objects that keep a tensor and that nothing else refers to. `words`: "Net → function hook → Net"."""

    words: str
    scope: Scope | None


class Garbage:
    """What is dead among objects that no name reaches.

    `reached` are ids of objects known to be in use; `ways` are those of the walk: of a type without one no object matters.
    The time taken grows with the number of objects that are alive; what cannot be told by `deadline` counts as in use.
    """

    def __init__(self, wanted: set[int], reached: set[int], ways: dict[type, int], deadline: float) -> None:
        self.members = _garbage_around(wanted, reached, ways, deadline)
        """the dead ones among the objects with the ids `wanted`, and all that leads to them, by id"""
        self._referrers: dict[int, list[int]] = {}
        for key, item in self.members.items():
            for referred in gc.get_referents(item):
                if id(referred) in self.members:
                    self._referrers.setdefault(id(referred), []).append(key)

    def cycle(self, start: int) -> Cycle | None:
        """The nearest cycle that leads to the member with id `start`; None if there is none."""
        todo, seen = [start], {start}
        for key in todo:
            ring = _ring(key, self._referrers)
            if ring:
                return _in_words([self.members[part] for part in ring])
            todo += [above for above in dict.fromkeys(self._referrers.get(key, ())) if above not in seen]
            seen.update(todo)
        return None


def _garbage_around(
    wanted: set[int], reached: set[int], ways: dict[type, int], deadline: float
) -> dict[int, Any]:
    # A list that only this function knows takes part, to learn how many references are ours.
    probe: list[Any] = []
    objects = [item for item in gc.get_objects() if ways[type(item)] and id(item) not in reached]
    members = {id(item): item for item in objects if id(item) in wanted}
    members[id(probe)] = probe
    key, frontier = id(probe), set(wanted)
    for _ in range(_MOST_LEVELS):
        if not frontier:
            break
        if time.thread_time() > deadline or len(members) > _MOST_MEMBERS:
            return {}
        found = _referring(objects, frontier, {id(objects), id(members)} | members.keys())
        members.update(found)
        frontier = set(found)
        del found
    else:
        return {}
    del probe
    return _unused(members, key)


def _referring(objects: list[Any], targets: set[int], passed_over: Set[int]) -> dict[int, Any]:
    found = {}
    for start in range(0, len(objects), _CHUNK):
        chunk = objects[start : start + _CHUNK]
        if not targets.isdisjoint(map(id, gc.get_referents(*chunk))):
            for item in chunk:
                if id(item) not in passed_over and not targets.isdisjoint(map(id, gc.get_referents(item))):
                    found[id(item)] = item
    return found


def _unused(members: dict[int, Any], probe: int) -> dict[int, Any]:
    """`members` without those that something else refers to, and without what these lead to."""
    inner = _inner_references(members)
    counts = {key: sys.getrefcount(item) for key, item in members.items()}
    todo = [key for key, count in counts.items() if count - inner[key] > counts[probe]]
    del members[probe]
    while todo:
        item = members.pop(todo.pop(), None)
        if item is not None:
            todo += [id(referred) for referred in gc.get_referents(item) if id(referred) in members]
    return members


def _inner_references(members: dict[int, Any]) -> dict[int, int]:
    inner = dict.fromkeys(members, 0)
    for item in members.values():
        for referred in gc.get_referents(item):
            if id(referred) in inner:
                inner[id(referred)] += 1
    return inner


def _ring(start: int, referrers: dict[int, list[int]]) -> list[int]:
    """From `start` along references back to itself, without the repetition."""
    came: dict[int, int] = {}
    todo = [start]
    for key in todo:
        for above in referrers.get(key, ()):
            if above == start:
                ring = [key]
                while ring[-1] != start:
                    ring.append(came[ring[-1]])
                return [start, *ring[:-1]] if len(ring) > 1 else [start]
            if above not in came:
                came[above] = key
                todo.append(above)
    return []


def _in_words(ring: list[Any]) -> Cycle:
    names = [_word(item) for item in ring]
    shown = [name for name in names if name] or [type(item).__name__ for item in ring]
    first = next((at for at, item in enumerate(ring) if _has_attributes(item)), 0)
    ways = [
        _attribute(item, following, ring) for item, following in zip(ring, [*ring[1:], ring[0]], strict=True)
    ]
    scope = min((way for way in ways if way), default=None, key=lambda way: way[:2])
    start = shown.index(_word(ring[first])) if _word(ring[first]) in shown else 0
    shown = shown[start:] + shown[:start]
    return Cycle(" → ".join([*shown, shown[0]]), scope and scope[2])


def _has_attributes(item: Any) -> bool:
    return bool(type(item).__dictoffset__) and not isinstance(item, (type, FunctionType))


def _word(item: Any) -> str:
    if isinstance(item, FunctionType):
        return f"function {item.__qualname__}"
    if isinstance(item, MethodType):
        return f"method {item.__func__.__qualname__}"
    if isinstance(item, (dict, tuple, list, CellType)):
        return ""
    return type(item).__qualname__


def _attribute(item: Any, following: Any, ring: list[Any]) -> tuple[bool, str, Scope] | None:
    """The attribute of `item` that leads on along the ring, unless it is the table of a module; (through a container or
    not, name, scope): that which refers back without one is what a weak reference can take the place of."""
    if isinstance(item, FrameType):
        code = item.f_code
        name = next((key for key, value in local_variables(item).items() if value is following), None)
        return (False, name, Scope("local", name, code.co_filename, code)) if name else None
    if not _has_attributes(item):
        return None
    own = object.__getattribute__(item, "__dict__")
    if following is own:
        at = next(index for index, part in enumerate(ring) if part is own)
        following = ring[(at + 1) % len(ring)]
    for name, value in own.items():
        if value is following and name not in ("_parameters", "_buffers", "_modules"):
            through = isinstance(value, (dict, list, tuple, set))
            return through, name, Scope("attribute", name, owner=type(item))
    return None
