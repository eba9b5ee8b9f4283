"""Who keeps the program's storages on the GPU alive, seen from within: names, lines and bytes, never a reference kept."""

from __future__ import annotations

import functools
import gc
import time
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

from hotbed.recording.cycles import Cycle, Garbage
from hotbed.recording.fill_lines import FillLines
from hotbed.recording.owners import Owner, Owners
from hotbed.recording.reach import ENDING, Walk
from hotbed.recording.saved_graphs import SavedGraphs
from hotbed.recording.storages import storages
from hotbed.trace.recorded import Holding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hotbed.recording.storages import Place

ADDED_TO = "which is added to"
"""ends the `owner` of a tensor that is made from what it was before"""
_MOST_ROWS = 64
_MOST_ADDRESSES = 4096
_MOST_NODES = 4000
"""of graphs behind one owner"""
_MOST_GRAPHS = 12
_MOST_WITH_GRAPH = 256
_WORTH_A_SEARCH, _WORTH_IT = 1 << 20, 8 << 20
"""bytes that no name reaches, from which on it is asked who has them: in libraries and at the end; among dead cycles"""
_SEARCH_S, _LONG_SEARCH_S = 1.0, 5.0


class Holders:
    """Looks for owners. `seconds`: how long the last look took. `trouble`: why it failed, None if it did not."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._lines = FillLines()
        self._graphs = SavedGraphs(torch)
        self._missing = 0
        self._searched = 0
        self.seconds = 0.0
        self.trouble: str | None = None

    def sample(
        self, budget_s: float = 0.25, *, garbage: bool = False, ended_by: BaseException | None = None
    ) -> dict[int, tuple[Holding, ...]]:
        """device → its owners, the largest first. Takes about `budget_s` of processor time; raises nothing.

        Dead cycles are looked for, in another second, where half as much again is in nobody's hands as when they were
        last looked for. `garbage`: in any case, and for longer: at an out-of-memory error and the program's end.
        `ended_by`: the exception that ends the program.
        """
        begun = time.perf_counter()
        # What this allocates must not set off a collection that the program would not have had.
        collecting = gc.isenabled()
        gc.disable()
        try:
            with self._torch._C.DisableTorchFunctionSubclass():
                found = self._sample(time.thread_time() + budget_s, garbage, ended_by)
            self.trouble = None
        except Exception as error:  # noqa: BLE001 - an object like no other must not stop the program
            found = {}
            self.trouble = f"who holds memory is not known: {type(error).__name__}: {error}"
        finally:
            if collecting:
                gc.enable()
            self.seconds = time.perf_counter() - begun
        return found

    def _sample(
        self, deadline: float, garbage: bool, ended_by: BaseException | None
    ) -> dict[int, tuple[Holding, ...]]:
        walk = Walk(self._torch, deadline)
        walk.program(ended_by)
        owners = Owners(walk)
        lost = self._lost(owners, garbage)
        if walk.complete and _bytes(lost.values()) >= _WORTH_A_SEARCH:
            walk.libraries()
            owners = Owners(walk)
        found, known = self._named(owners)
        complete = walk.complete
        limit = time.thread_time() + (_LONG_SEARCH_S if garbage else _SEARCH_S)
        search = functools.partial(Garbage, reached=walk.seen, ways=walk.ways, deadline=limit)
        # From here on nothing of ours may refer to what the program has.
        del walk, owners
        lost = {key: places - known for key, places in lost.items() if not places <= known}
        nobodys = _bytes(lost.values())
        if not complete or nobodys < (_WORTH_A_SEARCH if garbage else max(_WORTH_IT, self._searched * 1.5)):
            return found
        self._searched = nobodys
        for device, holding in self._unnamed(lost, search):
            found[device] = (*found.get(device, ()), holding)
        return found

    def _lost(self, owners: Owners, garbage: bool) -> dict[int, set[Place]]:
        """Storages of tensors that no name reaches, by id; not looked for while as little is unaccounted for as before."""
        torch = self._torch
        stats = [torch._C._cuda_memoryStats(device) for device in range(torch.cuda.device_count())]
        allocated = sum(
            of_device.get("allocated_bytes", {}).get("all", {}).get("current", 0) for of_device in stats
        )
        missing = allocated - _bytes([owners.known])
        if not garbage and missing < 1.5 * self._missing + _WORTH_IT:
            return {}
        self._missing = missing
        return _unreached(torch, owners.known)

    def _named(self, owners: Owners) -> tuple[dict[int, tuple[Holding, ...]], set[Place]]:
        """Rows by device, and every storage that they tell of."""
        found, known = {}, set(owners.known)
        for device, of_device in owners.by_device.items():
            found[device], saved = self._holdings(of_device, owners.known)
            known |= saved
        return found, known

    def _holdings(self, rows: dict[str, Owner], plain: set[Place]) -> tuple[tuple[Holding, ...], set[Place]]:
        """What is written of them, and the storages that graphs behind them keep; names reach those in `plain`."""
        rows = {path: row for path, row in rows.items() if ENDING not in path}
        largest = sorted(rows.values(), key=lambda row: -_bytes([row.places]))[:_MOST_ROWS]
        fullest = sorted(rows.values(), key=lambda row: -len(row.tensors))[:_MOST_ROWS]
        chosen = list({row.name.path: row for row in (*largest, *fullest)}.values())
        holdings = [self._holding(row) for row in chosen]
        graphs, saved = self._behind(chosen, plain)
        return tuple(sorted(holdings + graphs, key=lambda holding: -holding.bytes)), saved

    def _holding(self, row: Owner) -> Holding:
        return Holding(
            kind=row.name.kind if row.name.kind in _KINDS else "attribute",  # type: ignore[arg-type]
            owner=self._words(row),
            path=row.name.path,
            where=self._lines.of(row.name.scope),
            tensors=len(row.tensors),
            bytes=_bytes([row.places]),
            with_graph=len(row.with_graph),
            addresses=_addresses(row.places),
        )

    def _words(self, row: Owner) -> str:
        path = row.name.path
        words = f"{row.word}, {path}" if " " in path else f"{row.word} `{path}`"
        is_added_to = row.word == "tensor" and self._lines.adds(row.name.scope)
        return f"{words}, {ADDED_TO}" if is_added_to else words

    def _behind(self, rows: list[Owner], plain: set[Place]) -> tuple[list[Holding], set[Place]]:
        """Rows of graphs: what they keep that no name reaches, under the path of the tensors in front."""
        found: list[tuple[int, Holding]] = []
        saved: set[Place] = set()
        with_graph = sorted((row for row in rows if row.with_graph), key=lambda row: -len(row.with_graph))
        for row in with_graph[:_MOST_GRAPHS]:
            graph = self._graphs.behind(row.with_graph[-_MOST_WITH_GRAPH:], _MOST_NODES)
            kept = graph.saved - plain
            saved |= kept
            least = "" if graph.whole else "at least "
            holding = replace(
                self._holding(row),
                kind="graph",
                owner=f"autograd graph behind `{row.name.path}`: {least}{graph.nodes} nodes",
                tensors=len(kept),
                bytes=_bytes([kept]),
                addresses=_addresses(kept),
            )
            found.append((graph.nodes, holding))
        # Of graphs that keep the same, the shortest is the one that the others hang on.
        return [holding for _, holding in sorted(found, key=lambda pair: pair[0])], saved

    def _unnamed(
        self, places: dict[int, set[Place]], search: Callable[[set[int]], Garbage]
    ) -> list[tuple[int, Holding]]:
        """Rows of tensors that no name reaches, given their storages by id: dead cycles, and what native code keeps."""
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
            bytes=_bytes([kept]),
            addresses=_addresses(kept),
        )


_OTHER = Cycle("of other objects", None)
_KINDS = frozenset(("container", "attribute", "variable", "closure", "traceback", "cycle", "graph"))


def _unreached(torch: Any, known: set[Place]) -> dict[int, set[Place]]:
    """id → storages of the tensors that are alive, without the storages `known`."""
    found = {}
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, torch.Tensor)}
    for item in compress(objects, map(kinds.__contains__, map(type, objects))):
        places = {place for place in storages(item) if place not in known}
        if places:
            found[id(item)] = places
    return found


def _bytes(places: Iterable[set[Place]]) -> int:
    return sum(place[2] for place in set().union(*places))


def _addresses(places: set[Place]) -> tuple[int, ...]:
    return tuple(sorted(place[1] for place in places))[:_MOST_ADDRESSES]
