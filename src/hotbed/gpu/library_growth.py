"""What a process takes on a GPU beside its allocators: context and libraries, read from calibration files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError
from hotbed.gpu.catalogue import DEFAULT_GPU, find_gpu
from hotbed.gpu.driver_costs import calibration_files
from hotbed.gpu.model import LibraryGrowth
from hotbed.gpu.tables import read_table

if TYPE_CHECKING:
    from hotbed.gpu.model import Gpu


def library_growth_for(gpu: Gpu) -> LibraryGrowth:
    """Growth on `gpu`: of the very card, else the user's own calibration of that model, else the shipped one, else an H200's.

    `card` of the result says which. Raises HotbedError when a calibration file of the user cannot be understood.
    """
    if gpu.growth is not None:
        return gpu.growth
    known = {
        found.card: found
        for path in reversed(calibration_files())
        if (found := read_growth(read_table(path)))
    }
    return known.get(gpu.name) or known[find_gpu(DEFAULT_GPU).name]


def read_growth(table: dict[str, Any]) -> LibraryGrowth | None:
    """The [growth] of a calibration; None where it has none. Raises HotbedError when it makes no sense."""
    if "growth" not in table:
        return None
    try:
        rows = table["growth"]
        added = tuple((str(use), int(size)) for use, size in rows["added_bytes"].items())
        return LibraryGrowth(int(rows["context_bytes"]), added, table["gpu"], table["source"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        hint = "write it again: hotbed calibrate --force"
        raise HotbedError(f"[growth] of a calibration makes no sense: {error!r}", hint=hint) from None
