"""Who keeps the program's storages on the GPU alive, seen from within: names, lines and bytes, never a reference kept."""

from __future__ import annotations

import functools
import gc
import math
import time
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

from hotbed.recording.cycles import Cycle, Garbage
from hotbed.recording.fill_lines import FillLines
from hotbed.recording.naming import Names
from hotbed.recording.reach import Walk, is_cache
from hotbed.recording.saved_graphs import SavedGraphs
from hotbed.recording.storages import storages
from hotbed.trace.recorded import Holding

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.recording.naming import Name
    from hotbed.recording.storages import Place

_MOST_ROWS = 64
_MOST_ADDRESSES = 4096
_MOST_NODES = 4000
"""of graphs behind one owner"""
_MOST_GRAPHS = 12
_MOST_WITH_GRAPH = 256
_DEEPEST = 40
_WORTH_A_SEARCH = 1 << 20
"""bytes that no name reaches, from which on it is asked who has them"""


@dataclass
class _Row:
    """What is found of one owner on one device."""

    name: Name
    word: str
    places: set[Place] = field(default_factory=set)
    tensors: set[int] = field(default_factory=set)
    with_graph: list[Any] = field(default_factory=list)


class Holders:
    """Looks for owners. `seconds`: how long the last look took. `trouble`: why it failed, None if it did not."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._lines = FillLines()
        self._graphs = SavedGraphs(torch)
        self.seconds = 0.0
        self.trouble: str | None = None

    def sample(self, budget_s: float = 0.25, *, garbage: bool = False) -> dict[int, tuple[Holding, ...]]:
        """device → its owners, the largest first. Takes about as long as `budget_s` at most; raises nothing.

        `garbage`: look for dead cycles, however long that takes: for an out-of-memory error and the program's end.
        """
        begun = time.perf_counter()
        # What this allocates must not set off a collection that the program would not have had.
        collecting = gc.isenabled()
        gc.disable()
        try:
            with self._torch._C.DisableTorchFunctionSubclass():
                found = self._sample(begun + budget_s, garbage)
            self.trouble = None
        except Exception as error:  # noqa: BLE001 - an object like no other must not stop the program
            found = {}
            self.trouble = f"who holds memory is not known: {type(error).__name__}: {error}"
        finally:
            if collecting:
                gc.enable()
            self.seconds = time.perf_counter() - begun
        return found

    def _sample(self, deadline: float, garbage: bool) -> dict[int, tuple[Holding, ...]]:
        walk = Walk(self._torch, deadline)
        rows, tensors = self._named(walk)
        dead = functools.partial(Garbage, reached=walk.seen, ways=walk.ways)
        del walk
        known = {place for of_device in rows.values() for row in of_device.values() for place in row.places}
        found = {}
        for device, of_device in rows.items():
            found[device], saved = self._holdings(of_device, known)
            known |= saved
        del rows
        for device, holding in self._unnamed(
            tensors, known, functools.partial(dead, deadline=math.inf if garbage else deadline)
        ):
            found[device] = (*found.get(device, ()), holding)
        return found

    def _named(self, walk: Walk) -> tuple[dict[int, dict[str, _Row]], set[int]]:
        """Rows of what names reach by device and path, and the ids of the tensors among it."""
        walk.run()
        names = Names(walk)
        rows: dict[int, dict[str, _Row]] = {}
        places: dict[int, list[Place]] = {}
        for tensor, parent in walk.tensors:
            if id(tensor) not in places:
                places[id(tensor)] = _places(tensor)
            for place in places[id(tensor)]:
                of_device = rows.setdefault(place[0], {})
                for name, word in _owners(walk, names, tensor, parent):
                    row = of_device.setdefault(name.path, _Row(name, word))
                    row.places.add(place)
                    if id(tensor) not in row.tensors:
                        row.tensors.add(id(tensor))
                        if tensor.requires_grad and not tensor.is_leaf:
                            row.with_graph.append(tensor)
        return rows, set(places)

    def _holdings(self, rows: dict[str, _Row], plain: set[Place]) -> tuple[tuple[Holding, ...], set[Place]]:
        """What is written of them, and the storages that graphs behind them keep; names reach those in `plain`."""
        largest = sorted(rows.values(), key=lambda row: -_bytes(row.places))[:_MOST_ROWS]
        fullest = sorted(rows.values(), key=lambda row: -len(row.tensors))[:_MOST_ROWS]
        chosen = list({row.name.path: row for row in (*largest, *fullest)}.values())
        holdings = [self._holding(row) for row in chosen]
        graphs, saved = self._behind(chosen, plain)
        return tuple(sorted(holdings + graphs, key=lambda holding: -holding.bytes)), saved

    def _holding(self, row: _Row) -> Holding:
        return Holding(
            kind=row.name.kind if row.name.kind in _KINDS else "attribute",  # type: ignore[arg-type]
            owner=f"{row.word} `{row.name.path}`"
            if " " not in row.name.path
            else f"{row.word}, {row.name.path}",
            path=row.name.path,
            where=self._lines.of(row.name.scope),
            tensors=len(row.tensors),
            bytes=_bytes(row.places),
            with_graph=len(row.with_graph),
            addresses=_addresses(row.places),
        )

    def _behind(self, rows: list[_Row], plain: set[Place]) -> tuple[list[Holding], set[Place]]:
        """Rows of graphs: what they keep that no name reaches, under the path of the tensors in front."""
        found = []
        saved: set[Place] = set()
        with_graph = sorted((row for row in rows if row.with_graph), key=lambda row: -len(row.with_graph))
        for row in with_graph[:_MOST_GRAPHS]:
            graph = self._graphs.behind(row.with_graph[-_MOST_WITH_GRAPH:], _MOST_NODES)
            kept = graph.saved - plain
            saved |= kept
            least = "" if graph.whole else "at least "
            found.append(
                replace(
                    self._holding(row),
                    kind="graph",
                    owner=f"autograd graph behind `{row.name.path}`: {least}{graph.nodes} nodes",
                    tensors=len(kept),
                    bytes=_bytes(kept),
                    addresses=_addresses(kept),
                )
            )
        return found, saved

    def _unnamed(
        self, named: set[int], known: set[Place], search: Callable[[set[int]], Garbage]
    ) -> list[tuple[int, Holding]]:
        """Rows of tensors that no name reaches: dead cycles, and what native code or a library's depths keep."""
        places = _unreached(self._torch, named, known)
        if _bytes(set().union(*places.values())) < _WORTH_A_SEARCH:
            return []
        garbage = search(set(places))
        groups: dict[tuple[int, Cycle | None], list[Place]] = {}
        for key, of_key in places.items():
            cycle = garbage.cycle(key) if key in garbage.members and len(groups) < _MOST_GRAPHS else None
            cycle = cycle or (_OTHER if key in garbage.members else None)
            for place in of_key:
                groups.setdefault((place[0], cycle), []).append(place)
        return [(device, self._cycle(cycle, kept)) for (device, cycle), kept in groups.items()]

    def _cycle(self, cycle: Cycle | None, places: list[Place]) -> Holding:
        kept = set(places)
        return Holding(
            kind="attribute" if cycle is None else "cycle",
            owner="no name of the program" if cycle is None else f"dead cycle {cycle.words}",
            path="" if cycle is None else cycle.words,
            where=None if cycle is None else self._lines.of(cycle.scope),
            tensors=len(places),
            bytes=_bytes(kept),
            addresses=_addresses(kept),
        )


_OTHER = Cycle("of other objects", None)
_KINDS = frozenset(("container", "attribute", "variable", "closure", "traceback", "cycle", "graph"))


def _owners(walk: Walk, names: Names, tensor: Any, parent: int) -> list[tuple[Name, str]]:
    """Every owner on the way to `tensor`, itself first if a name stands for it directly."""
    found = []
    name = names.child(tensor, parent)
    if name.row:
        found.append((name, "tensor"))
    for _ in range(_DEEPEST):
        if parent < 0:
            break
        name = names.of(parent)
        if name.row:
            item = walk.objects[parent]
            found.append((name, "functools cache" if is_cache(item) else type(item).__name__))
        parent = walk.parents[parent]
    return found


def _places(tensor: Any) -> list[Place]:
    return list(storages(tensor)) + (
        list(storages(tensor.grad)) if tensor.requires_grad and tensor.is_leaf else []
    )


def _unreached(torch: Any, named: set[int], known: set[Place]) -> dict[int, set[Place]]:
    """id → storages of the tensors that are alive and in none of `named`, without the storages `known`."""
    found = {}
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, torch.Tensor)}
    for item in compress(objects, map(kinds.__contains__, map(type, objects))):
        if id(item) not in named:
            places = {place for place in storages(item) if place not in known}
            if places:
                found[id(item)] = places
    return found


def _bytes(places: set[Place]) -> int:
    return sum(place[2] for place in places)


def _addresses(places: set[Place]) -> tuple[int, ...]:
    return tuple(sorted(place[1] for place in places))[:_MOST_ADDRESSES]
