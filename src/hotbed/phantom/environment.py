"""The environment that makes a child process run on phantom GPUs."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import PlatformError, UsageError
from hotbed.gpu import DEFAULT_GPU, Gpu, find_gpu
from hotbed.phantom.library import phantom_folder, preloaded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotbed.gpu.model import Layout

MAX_GPUS = 64
MAX_LAYOUTS = 4
"""The likely GPC layout and as many others as native/phantom/phantom.h has alternatives"""

# Key of the phantom's spec string -> field of Gpu with that figure. An unknown figure is left to the default of
# native/phantom/spec.c.
_FIGURES = {
    "total": "total_bytes",
    "nvml_total": "nvml_total_bytes",
    "sm": "sm_count",
    "smem_sm": "shared_memory_per_sm_bytes",
    "smem_optin": "shared_memory_optin_bytes",
    "l2": "l2_bytes",
    "bus": "memory_bus_bits",
}


def spec_string(gpu: Gpu, *, context: bool = False, others: int = 0) -> str:
    """What HOTBED_PHANTOM_GPU says about `gpu`: "name=NVIDIA H200;total=150109880320;...".

    With `context`, a process takes the memory of a CUDA context by touching the device, where it is known.
    `others` bytes of each device are held by another process.
    """
    pairs: dict[str, object] = {"name": gpu.name.replace(";", " ")}
    pairs |= {key: getattr(gpu, figure) for key, figure in _FIGURES.items()}
    if gpu.compute_capability:
        major, minor = gpu.compute_capability
        pairs["cc"] = 10 * major + minor
    if context:
        pairs["context"] = gpu.context_bytes
    if others:
        pairs["others"] = others
    if gpu.layouts:
        pairs |= _layout_pairs(gpu.layouts[:MAX_LAYOUTS])
    return ";".join(f"{key}={value}" for key, value in pairs.items() if value is not None)


def _layout_pairs(layouts: Sequence[Layout]) -> dict[str, str]:
    """The keys "gpc" and "clusters": numbers of each layout, layouts divided by "|", no numbers where not measured."""
    pairs = {"gpc": "|".join(",".join(map(str, layout.sms_per_gpc)) for layout in layouts)}
    if any(layout.active_clusters for layout in layouts):
        pairs["clusters"] = "|".join(",".join(map(str, layout.active_clusters or ())) for layout in layouts)
    return pairs


def environment(
    gpu: Gpu | str | None = None,
    *,
    count: int = 1,
    context: bool = False,
    others: int = 0,
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """`base` (default: this process's environment) changed so that a child started with it sees phantom GPUs.

    `gpu` is the model of all `count` devices or its catalogue name (default: an H200), `context` and `others`
    as for `spec_string`. CUDA_VISIBLE_DEVICES keeps its meaning. Raises PlatformError where the phantom cannot run.
    """
    if not 1 <= count <= MAX_GPUS:
        raise UsageError(f"{count} phantom GPUs are not possible", hint=f"ask for 1 to {MAX_GPUS}")
    card = find_gpu(gpu or DEFAULT_GPU) if gpu is None or isinstance(gpu, str) else gpu
    if not 0 <= others < card.total_bytes:
        raise UsageError(
            f"another process cannot hold {others} bytes of a {card.name} with {card.total_bytes}",
            hint="give --others less than the memory of one GPU",
        )
    folder = str(phantom_folder())
    if ":" in folder or ";" in folder:
        raise PlatformError(
            f"the phantom GPU is installed at {folder}: the loader cannot use a path with a colon or semicolon",
            hint="install hotbed in another folder",
        )
    # LD_PRELOAD splits at blanks, LD_LIBRARY_PATH does not.
    preload = [path.name if " " in folder else str(path) for path in preloaded()]
    result = dict(os.environ if base is None else base)
    result["LD_PRELOAD"] = _prepended(preload, result.get("LD_PRELOAD"))
    result["LD_LIBRARY_PATH"] = _prepended([folder], result.get("LD_LIBRARY_PATH"))
    # What is compiled or timed here must not reach a later run on a real GPU by way of torch's caches.
    result["USE_PYTORCH_KERNEL_CACHE"] = "0"
    result.setdefault("TORCHINDUCTOR_CACHE_DIR", str(_cache(result) / "inductor"))
    result["HOTBED_PHANTOM"] = "1"
    result["HOTBED_PHANTOM_GPU"] = spec_string(card, context=context, others=others)
    result["HOTBED_PHANTOM_COUNT"] = str(count)
    return result


def _cache(env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotbed"


def _prepended(first: Sequence[str], rest: str | None) -> str:
    others = [part for part in (rest or "").split(":") if part and part not in first]
    return ":".join([*first, *others])


def refuse_privileged(program: str, env: Mapping[str, str]) -> None:
    """Raises PlatformError if `program` gains rights when started: the loader ignores preloading for such files."""
    path = shutil.which(program, path=env.get("PATH"))
    if path is None:
        raise UsageError(
            f"{program!r} is not a program that can be started", hint="give its path, or put it on PATH"
        )
    mode = Path(path).stat().st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID) or _has_capabilities(path):
        raise PlatformError(
            f"{path} runs with raised privileges (setuid, setgid or capabilities), so it cannot run on a phantom GPU",
            hint="start the Python interpreter itself, not a privileged wrapper around it",
        )


def _has_capabilities(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False
