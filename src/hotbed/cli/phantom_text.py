"""Text of what the phantom covers, and of the GPUs that it shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hotbed.phantom.coverage import LIBRARIES, library_of
from hotbed.units import format_mib

if TYPE_CHECKING:
    from hotbed.phantom.coverage import Coverage
    from hotbed.phantom.nvml import SeenGpu


def coverage_text(found: Coverage) -> str:
    """How many entry points are modelled, and the names of those that are not."""
    counts = Counter(library_of(name) for name in found.modelled)
    each = ", ".join(f"{library} {counts[library]}" for library in LIBRARIES if counts[library])
    lines = [f"{len(found.modelled)} entry points of torch {found.torch_version} are modelled: {each}"]
    if found.stubs:
        lines.append(f"{len(found.stubs)} fail when called, and are named then: {', '.join(found.stubs)}")
    if found.uncovered:
        lines.append(f"{len(found.uncovered)} are missing: {', '.join(found.uncovered)}")
    return "\n".join(lines)


def nvml_table(gpus: tuple[SeenGpu, ...]) -> Table:
    """A row for each GPU."""
    table = Table("index", "name", "uuid", "total", "used", box=box.SIMPLE_HEAD)
    for gpu in gpus:
        table.add_row(
            str(gpu.index), gpu.name, gpu.uuid, format_mib(gpu.total_bytes), format_mib(gpu.used_bytes)
        )
    return table
