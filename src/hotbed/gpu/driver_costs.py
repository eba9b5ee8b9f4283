"""What the driver's memory calls cost in time on a GPU, read from calibration files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError
from hotbed.gpu.catalogue import DEFAULT_GPU
from hotbed.gpu.tables import read_table
from hotbed.units import MIB

if TYPE_CHECKING:
    from hotbed.gpu.model import Gpu

CALIBRATION_SCHEMA = 1
CALLS = ("cuda_malloc", "cuda_free", "mem_create", "mem_release", "mem_map", "mem_unmap", "set_access")

_SHIPPED = Path(__file__).with_name("calibrations")


@dataclass(frozen=True)
class CallCost:
    """Time of one driver call as a line: `base_us` microseconds plus `us_per_mib` for each MiB of its size."""

    base_us: float
    us_per_mib: float
    kind: str = "measured"

    def us(self, size_bytes: float, calls: int = 1) -> float:
        """Microseconds of `calls` calls over `size_bytes` bytes in all."""
        return self.base_us * calls + self.us_per_mib * size_bytes / MIB


@dataclass(frozen=True)
class DriverCosts:
    """Costs of the seven calls by which torch gets and returns device memory.

    `set_access` is for each page that a call opens, not for each call: on an H200 one call over 16 pages of 20 MiB
    took 16 times as long as one over a single page. `gpu_name` is the card the figures belong to and `source` says in
    words where they come from;
    `is_substitute` is True when they belong to another card than the one asked for.
    """

    cuda_malloc: CallCost
    cuda_free: CallCost
    mem_create: CallCost
    mem_release: CallCost
    mem_map: CallCost
    mem_unmap: CallCost
    set_access: CallCost
    gpu_name: str
    source: str
    is_substitute: bool = False

    @property
    def assumed(self) -> tuple[str, ...]:
        """The calls whose cost nobody measured."""
        return tuple(call for call in CALLS if getattr(self, call).kind == "assumed")


def costs_for(gpu: Gpu) -> DriverCosts:
    """Costs on `gpu`: the user's own calibration, else the shipped one, else those of an H200, marked as such.

    Raises HotbedError when a calibration file of the user cannot be understood.
    """
    for path in calibration_files():
        costs = read_calibration(path)
        if costs.gpu_name == gpu.name:
            return costs
    shipped = read_calibration(_SHIPPED / f"{DEFAULT_GPU}.toml")
    words = f"{shipped.source}; {gpu.name} is not calibrated, run `hotbed calibrate` on one"
    return replace(shipped, source=words, is_substitute=True)


def user_folder() -> Path | None:
    """Where `hotbed calibrate` puts its files and this module looks first; None for a user without a home."""
    try:
        base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    except RuntimeError:
        # A container may run under a number that no user has.
        return None
    return Path(base) / "hotbed" / "calibrations"


def read_calibration(path: Path) -> DriverCosts:
    """The costs in one calibration file. Raises HotbedError with the file's name when they are not there."""
    table = read_table(path)
    if table.get("schema") != CALIBRATION_SCHEMA:
        raise HotbedError(
            f"{path}: calibration schema {table.get('schema')!r}, expected {CALIBRATION_SCHEMA}"
        )
    try:
        calls = table["calls"]
        return DriverCosts(
            cuda_malloc=_cost(calls["cuda_malloc"]),
            cuda_free=_cost(calls["cuda_free"]),
            mem_create=_cost(calls["mem_create"]),
            mem_release=_cost(calls["mem_release"]),
            mem_map=_cost(calls["mem_map"]),
            mem_unmap=_cost(calls["mem_unmap"]),
            set_access=_cost(calls["set_access"]),
            gpu_name=table["gpu"],
            source=table["source"],
        )
    except (KeyError, TypeError, ValueError) as error:
        hint = "write it again: hotbed calibrate --force"
        raise HotbedError(f"{path} is not a calibration: {error!r}", hint=hint) from None


def _cost(row: dict[str, Any]) -> CallCost:
    return CallCost(float(row["base_us"]), float(row["us_per_mib"]), str(row["kind"]))


def calibration_files() -> list[Path]:
    """Every calibration there is, those of the user first."""
    own = user_folder()
    mine = sorted(own.glob("*.toml")) if own is not None and own.is_dir() else []
    return [*mine, *sorted(_SHIPPED.glob("*.toml"))]
