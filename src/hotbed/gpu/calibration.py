"""Calibration files: one measurement of one card as TOML, with where, when and how it was made."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError, PlatformError, UsageError
from hotbed.files import replacing
from hotbed.gpu.catalogue import find_gpu
from hotbed.gpu.driver_costs import CALIBRATION_SCHEMA
from hotbed.gpu.library_growth import read_growth
from hotbed.gpu.live import live_driver
from hotbed.gpu.model import FIGURES, Gpu, Layout, Source
from hotbed.gpu.tables import read_table

if TYPE_CHECKING:
    from hotbed.gpu.clusters import Clusters
    from hotbed.gpu.growth import Growth
    from hotbed.gpu.measuring import Measurement


@dataclass(frozen=True)
class Origin:
    """Where a measurement was made: everything that the figures may depend on besides the GPU."""

    date: str
    command: str
    hotbed_version: str
    python_version: str
    driver_version: str | None
    host_cpu: str | None


def origin_here(command: str, hotbed_version: str) -> Origin:
    """The origin of a measurement made now, on this machine, by `command`."""
    try:
        driver = live_driver().version
    except PlatformError:
        driver = None
    today = datetime.now(timezone.utc).date().isoformat()
    return Origin(today, command, hotbed_version, platform.python_version(), driver, _cpu())


def as_table(
    measured: Measurement, origin: Origin, clusters: Clusters | None = None, growth: Growth | None = None
) -> dict[str, Any]:
    """The calibration as plain containers: what the file holds and what `--json` prints. Unknown keys are absent."""
    driver = f"driver {origin.driver_version}, " if origin.driver_version else ""
    table: dict[str, Any] = {
        "schema": CALIBRATION_SCHEMA,
        "gpu": measured.name,
        "source": f"one {measured.name}, {driver}measured {origin.date} by hotbed calibrate",
        "made": asdict(origin),
        "device": {
            "total_bytes": measured.total_bytes,
            "nvml_total_bytes": measured.nvml_total_bytes,
            "cuda_version": "{}.{}".format(*measured.cuda_version),
            **measured.figures,
        },
        "context": asdict(measured.context),
        "timing": {
            "allocation_call": measured.allocation_call,
            "overhead_us": round(measured.overhead_us, 3),
        },
        "address_reserve": {"size_bytes": measured.reserve_bytes, "median_us": round(measured.reserve_us, 3)},
        "calls": {call: asdict(cost) for call, cost in measured.costs.items()},
        "samples": [asdict(sample) for sample in measured.samples],
    }
    table |= _layout_table(clusters, growth)
    if growth is not None:
        table["growth"] = {
            "torch_version": growth.torch_version,
            "cudnn_version": growth.cudnn_version,
            "context_bytes": growth.context_bytes,
            "added_bytes": dict(growth.added_bytes),
            "failed": dict(growth.failed) or None,
        }
        table["cudnn"] = {"version": growth.cudnn.get("version"), "device_json": growth.cudnn.get("json")}
    return {key: known for key, value in table.items() if (known := _known(value)) != {}}


def _layout_table(clusters: Clusters | None, growth: Growth | None) -> dict[str, Any]:
    """The GPC layout, best as cuDNN itself measured it, since it is what cuDNN goes by."""
    seen = list(clusters.groups) if clusters else []
    by_cudnn = list(growth.cudnn.get("sms_per_gpc", ())) if growth else []
    sms = by_cudnn or seen
    if not sms:
        return {}
    if by_cudnn and seen:
        method = "by cuDNN" + (
            ", and the same by where clusters ran" if sms == seen else f"; clusters ran in {seen}"
        )
    else:
        method = "by cuDNN" if by_cudnn else "by where clusters ran"
    active = list(growth.cudnn.get("active_clusters", ())) if growth else []
    active = active or (list(clusters.active) if clusters else [])
    return {"layout": {"sms_per_gpc": sms, "active_clusters": active or None, "method": method}}


def load_gpu(path: Path) -> Gpu:
    """The card that a calibration describes: what the catalogue knows of its model, replaced by what was measured on it.

    Raises HotbedError when the file is none, or names a GPU that is unknown and not described; OSError when it cannot be
    read.
    """
    table = read_table(path)
    if table.get("schema") != CALIBRATION_SCHEMA:
        raise HotbedError(
            f"{path}: calibration schema {table.get('schema')!r}, expected {CALIBRATION_SCHEMA}"
        )
    try:
        return _with_measured(_model(table), table)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        hint = "write it again: hotbed calibrate --force"
        raise HotbedError(f"{path} does not describe a GPU: {error!r}", hint=hint) from None


def _model(table: dict[str, Any]) -> Gpu:
    try:
        return find_gpu(table["gpu"])
    except UsageError:
        slug = Path(default_name(table["gpu"])).stem
        return Gpu(slug=slug, name=table["gpu"], total_bytes=int(table["device"]["total_bytes"]))


def _with_measured(gpu: Gpu, table: dict[str, Any]) -> Gpu:
    device = table.get("device", {})
    figures: dict[str, Any] = {figure: int(device[figure]) for figure in FIGURES if figure in device}
    if "compute_capability_major" in device:
        figures["compute_capability"] = (
            int(device["compute_capability_major"]),
            int(device["compute_capability_minor"]),
        )
    context = table.get("context", {}).get("context_bytes")
    if context is not None:
        figures["context_bytes"] = int(context)
    layout = table.get("layout")
    layouts = gpu.layouts if layout is None else (_layout(layout, figures.get("sm_count", gpu.sm_count)),)
    measured = Source("measured", table["source"])
    sources = {**dict(gpu.sources), **dict.fromkeys(figures, measured)}
    return replace(gpu, **figures, layouts=layouts, growth=read_growth(table), sources=tuple(sources.items()))


def _layout(table: dict[str, Any], sm_count: int | None) -> Layout:
    sms = tuple(map(int, table["sms_per_gpc"]))
    if sm_count is not None and sum(sms) != sm_count:
        raise ValueError(f"sms_per_gpc adds up to {sum(sms)} of {sm_count} SMs")
    clusters = table.get("active_clusters")
    return Layout(sms, None if clusters is None else tuple(map(int, clusters)))


def default_name(gpu_name: str) -> str:
    """File name for the calibration of a card: its slug in the catalogue, else its name made safe."""
    try:
        return f"{find_gpu(gpu_name).slug}.toml"
    except UsageError:
        return "-".join(gpu_name.lower().split()) + ".toml"


def refuse_overwrite(path: Path, *, force: bool) -> None:
    """Raises UsageError when `path` exists and `force` is false."""
    if path.exists() and not force:
        raise UsageError(f"{path} exists", hint="write elsewhere with --out, or replace it with --force")


def write(table: dict[str, Any], path: Path, *, force: bool = False) -> None:
    """Writes the calibration to `path`, whole or not at all, making its folder.

    Raises UsageError when `path` exists and `force` is false, OSError when it cannot be written.
    """
    refuse_overwrite(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(_toml(table).encode())


def _known(value: Any) -> Any:
    return (
        {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value
    )


def _toml(table: dict[str, Any]) -> str:
    import tomlkit

    document = tomlkit.document()
    for key, value in table.items():
        # A top-level array after a table would belong to that table, so the samples get one of their own.
        document.add(key, _table_of_rows(value) if key in ("calls", "samples") else tomlkit.item(value))
    return tomlkit.dumps(document)


def _table_of_rows(rows: dict[str, Any] | list[Any]) -> Any:
    """A table with one inline table a line: keyed by call, or as the array `rows`."""
    import tomlkit

    table = tomlkit.table()
    if isinstance(rows, dict):
        for call, cost in rows.items():
            table.add(call, _inline(cost))
        return table
    array = tomlkit.array().multiline(True)
    for row in rows:
        array.append(_inline(row))
    table.add("rows", array)
    return table


def _inline(row: dict[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.inline_table()
    table.update(row)
    return table


def _cpu() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
