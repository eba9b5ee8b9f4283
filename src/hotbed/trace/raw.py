"""A decoded snapshot before it becomes a Trace: what the native reader and the Python reader both produce."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from hotbed.trace.model import Frame, PoolId

COLUMNS: Final = (
    ("action", np.uint8),
    ("address", np.uint64),
    ("size", np.int64),
    ("stream", np.uint64),
    ("time_us", np.int64),
    ("pool", np.int32),
    ("stack", np.int32),
    ("metadata", np.int32),
    ("compile_context", np.int32),
)


@dataclass(frozen=True)
class RawColumns:
    """The entries of one device as columns of length n; indices point into the tables of RawSnapshot, -1: absent."""

    action: npt.NDArray[np.uint8]
    address: npt.NDArray[np.uint64]
    size: npt.NDArray[np.int64]
    stream: npt.NDArray[np.uint64]
    time_us: npt.NDArray[np.int64]
    pool: npt.NDArray[np.int32]
    stack: npt.NDArray[np.int32]
    metadata: npt.NDArray[np.int32]
    compile_context: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True)
class RawSnapshot:
    """A whole file. `segments` are torch's dictionaries with `frames` replaced by an index into `stacks`."""

    devices: tuple[RawColumns, ...]
    segments: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    stacks: list[tuple[Frame, ...]] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    pools: list[PoolId] = field(default_factory=list)


def columns_of(values: Iterable[Any]) -> RawColumns:
    """Columns from one sequence each, in the order of COLUMNS."""
    arrays: dict[str, Any] = {
        name: np.asarray(column, dtype) for (name, dtype), column in zip(COLUMNS, values, strict=True)
    }
    return RawColumns(**arrays)


def no_entries() -> RawColumns:
    """Columns of length 0, for a device without history."""
    return columns_of([()] * len(COLUMNS))
