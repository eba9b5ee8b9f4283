"""Tables of an .hbt chunk as numpy columns, and back with delta coding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.trace import layout
from hotbed.trace.layout import Coding

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Spec = Sequence[tuple[str, str, int]]

DTYPES: Final = {"B": "<u1", "i": "<i4", "I": "<u4", "q": "<i8", "Q": "<u8"}


class DamagedError(Exception):
    """A payload does not follow the layout although its checksum is right."""


@dataclass(frozen=True)
class Rows:
    """A decoded table: `columns` by name, all of length `count`; `end` is where it ended in the payload."""

    count: int
    columns: dict[str, npt.NDArray[Any]]
    end: int


def read_table(payload: bytes, start: int, spec: Spec) -> Rows:
    """The table at `start` of `payload`. Columns that `spec` does not name are skipped. Raises DamagedError."""
    if len(payload) - start < layout.TABLE.size:
        raise DamagedError("a table is cut short")
    count, columns = layout.TABLE.unpack_from(payload, start)
    if count > layout.MAX_ROWS:
        raise DamagedError(f"a table has more than {layout.MAX_ROWS} rows")
    position = start + layout.TABLE.size
    found: dict[str, npt.NDArray[Any]] = {}
    for _ in range(columns):
        if len(payload) - position < layout.COLUMN.size:
            raise DamagedError("a column is cut short")
        number, code, coding, size = layout.COLUMN.unpack_from(payload, position)
        position += layout.COLUMN.size
        if size > len(payload) - position:
            raise DamagedError("a column is cut short")
        if 1 <= number <= len(spec):
            name, expected, _ = spec[number - 1]
            if code.decode("latin-1") != expected:
                raise DamagedError(f"column {name} has elements of type {code!r}")
            found[name] = _elements(payload, position, size, expected, coding, count)
        position += size
    for name, code, absent in spec:
        if name not in found:
            found[name] = np.full(count, absent, DTYPES[code])
    return Rows(count, found, position)


def _elements(payload: bytes, start: int, size: int, code: str, coding: int, count: int) -> npt.NDArray[Any]:
    dtype = np.dtype(DTYPES[code])
    stored = 1 if coding == Coding.CONSTANT else count
    if size != stored * dtype.itemsize:
        raise DamagedError("a column has the wrong length")
    elements = np.frombuffer(payload, dtype, stored, start)
    if coding == Coding.PLAIN:
        return elements
    if coding == Coding.CONSTANT:
        return np.full(count, elements[0], dtype)
    if coding == Coding.DELTA:
        return np.cumsum(elements, dtype=dtype)
    raise DamagedError(f"a column is coded in an unknown way ({coding})")


def packed_table(spec: Spec, values: Sequence[npt.NDArray[Any]], delta: frozenset[str]) -> bytes:
    """A table that compresses well: constants once, the columns in `delta` as differences, the usual left out."""
    count = len(values[0])
    kept = [
        _packed(number, code, elements.astype(DTYPES[code], copy=False), name in delta)
        for number, ((name, code, absent), elements) in enumerate(zip(spec, values, strict=True), 1)
        if count and (elements != absent).any()
    ]
    return layout.table(count, kept)


def _packed(number: int, code: str, elements: npt.NDArray[Any], delta: bool) -> bytes:
    if (elements == elements[0]).all():
        return layout.column(number, code, elements[:1].tobytes(), Coding.CONSTANT)
    if not delta:
        return layout.column(number, code, elements.tobytes())
    differences = np.empty_like(elements)
    differences[0] = elements[0]
    np.subtract(elements[1:], elements[:-1], out=differences[1:])
    return layout.column(number, code, differences.tobytes(), Coding.DELTA)
