"""Matches memory that grows with who the recorder's samples say keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.findings.growth import Growth, LineGrowth
    from hotbed.trace.recorded import Holding, Sample

HANDLED: Final = "exception "
"""how the path of an exception begins that no variable holds"""
_MOSTLY: Final = 0.5
"""share of a line's growing memory that an owner must have"""
_AS_GOOD: Final = 0.9
"""Of owners that have nearly the same, the smallest is the one that grows; the others contain it."""
_ORDER: Final = ("cycle", "traceback", "container", "closure", "attribute", "graph", "variable")


@dataclass(frozen=True)
class Keeper:
    """Growing lines with one owner. `holding` is its row in the `sample`, None where no sample tells of an owner.

    `by_graph`: the share of the growing bytes that autograd graphs behind the owner keep.
    """

    holding: Holding | None
    sample: Sample | None
    lines: list[LineGrowth]
    by_graph: float = 0.0

    @property
    def bytes(self) -> int:
        return sum(line.bytes for line in self.lines)

    @property
    def per_step_bytes(self) -> float:
        return sum(line.per_step_bytes for line in self.lines)


@dataclass(frozen=True)
class _Owner:
    """All rows of one path in a sample: what it holds itself, and what the graphs behind it hold."""

    plain: Holding | None
    graph: Holding | None

    @property
    def row(self) -> Holding:
        row = self.plain or self.graph
        assert row is not None
        return row

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in (self.plain, self.graph) if row is not None)

    def share(self, address: npt.NDArray[np.uint64], size: npt.NDArray[np.int64]) -> tuple[float, float]:
        """Bytes of the blocks at `address` that it holds, and that graphs behind it hold."""
        return _held(self.plain, address, size), _held(self.graph, address, size)


def _held(row: Holding | None, address: npt.NDArray[np.uint64], size: npt.NDArray[np.int64]) -> float:
    if row is None or not row.addresses:
        return 0.0
    held = float(size[np.isin(address, np.array(row.addresses, np.uint64))].sum())
    # Of an owner of very many storages not all addresses are known.
    return min(held * max(row.tensors / len(row.addresses), 1), float(size.sum()))


def keepers(case: Case, growth: Growth) -> list[Keeper]:
    """The growing lines of `growth`, grouped by who keeps what they allocate; the fastest growth first."""
    groups: dict[str | None, list[tuple[LineGrowth, Sample | None, _Owner | None]]] = {}
    for line in growth.lines:
        sample, owner = _keeper(case, growth, line)
        groups.setdefault(None if owner is None else owner.row.path, []).append((line, sample, owner))
    found = [_grouped(case, growth, rows) for rows in groups.values()]
    return sorted(found, key=lambda keeper: -keeper.per_step_bytes)


def _grouped(
    case: Case, growth: Growth, rows: list[tuple[LineGrowth, Sample | None, _Owner | None]]
) -> Keeper:
    lines = [line for line, _, _ in rows]
    _, sample, owner = rows[0]
    if sample is None or owner is None:
        return Keeper(None, None, lines)
    shares = [owner.share(*_grown(case, growth, line, sample)) for line in lines]
    by_graph = sum(graph for _, graph in shares)
    return Keeper(owner.row, sample, lines, by_graph / max(by_graph + sum(plain for plain, _ in shares), 1.0))


def _keeper(case: Case, growth: Growth, line: LineGrowth) -> tuple[Sample | None, _Owner | None]:
    """From the newest sample that knows one. Those behind the growth come last: what its functions held has no name then."""
    newest = case.recorded.samples[::-1]
    for sample in sorted(newest, key=lambda sample: (sample.event or 0) > int(growth.ends[-1])):
        if sample.event is not None:
            owner = _owner(sample, *_grown(case, growth, line, sample))
            if owner is not None:
                return sample, owner
    return None, None


def _grown(
    case: Case, growth: Growth, line: LineGrowth, sample: Sample
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Addresses and sizes of what the steps have allocated on `line` and is live at `sample`."""
    made = case.allocations
    grown = made.live_at(sample.event or 0) & (case.allocation_lines == line.line)
    grown &= made.made >= int(growth.ends[0])
    return made.address[grown], made.size[grown]


def _owner(sample: Sample, address: npt.NDArray[np.uint64], size: npt.NDArray[np.int64]) -> _Owner | None:
    total = float(size.sum())
    if not total:
        return None
    shares = [(sum(owner.share(address, size)) / total, owner) for owner in _owners(sample)]
    most = max((share for share, _ in shares), default=0.0)
    good = [owner for share, owner in shares if share >= max(_AS_GOOD * most, _MOSTLY)]
    return min(good, key=lambda owner: _preference(owner, *owner.share(address, size)), default=None)


def _owners(sample: Sample) -> list[_Owner]:
    rows: dict[str, dict[bool, Holding]] = {}
    for holding in sample.holdings:
        if holding.path.startswith(HANDLED) or f"traceback of {HANDLED}" in holding.path:
            # An error that is being handled, or ends the program, keeps all that its frames have: nothing that grows.
            continue
        if not holding.path:
            # Nobody's that the walk knows.
            continue
        rows.setdefault(holding.path, {})[holding.kind == "graph"] = holding
    return [_Owner(of_path.get(False), of_path.get(True)) for of_path in rows.values()]


def _preference(owner: _Owner, plain: float, by_graph: float) -> tuple[bool, int, int, int]:
    """The least is the likeliest to be the one that grows."""
    row = owner.row
    if row.kind in ("cycle", "traceback"):
        # That has an owner too; but the way out is there. Of an exception and the frames in it, it is the exception.
        return False, 0, 0, len(row.path)
    if owner.graph is not None and by_graph > plain:
        # Of owners of one graph it is the tensor in front, not the module that has it too; of two the first in a sample.
        return (
            True,
            owner.graph.bytes,
            int(owner.plain is None or not owner.plain.owner.startswith("tensor ")),
            0,
        )
    return True, owner.bytes, _ORDER.index(row.kind), -len(row.path)
