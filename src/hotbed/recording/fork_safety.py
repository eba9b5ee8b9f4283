"""Whether a child of this process could go on with the program in its place."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_TASKS = Path("/proc/self/task")
# tqdm starts its monitor anew where it is missing.
_EXPENDABLE = ("tqdm._monitor",)
_TORCH_FOLDER = "torch.distributed.nn.jit.instantiator"
"""In torch 2.9 and before it makes a temporary folder as it is imported, for modules on other machines."""


def native_threads() -> int:
    """Threads of this process that Python does not know of."""
    return len(list(_TASKS.iterdir())) - len(threading.enumerate())


def why_not(torch: Any, control: Any) -> str | None:
    """What would be lost or shared in a forked child, in words; None if nothing would."""
    if threading.current_thread() is not threading.main_thread():
        return "CUDA is first used by another thread than the main one"
    if any(_matters(thread) for thread in threading.enumerate()):
        return "threads are running"
    if any(name.startswith("pt_autograd") for name in _thread_names()):
        return "the threads of autograd are running"
    if torch._C._len_torch_dispatch_stack() or torch.compiler.is_compiling():
        return "a mode of torch is active"
    if any(_touched(control.counters(device)) for device in range(torch.cuda.device_count())):
        return "the driver is already in use"
    if _has_children():
        return "there are child processes"
    if _open_sockets():
        return "there are open sockets"
    if _temporary_folders():
        return "a temporary folder would be removed by the first child"
    return None


def _matters(thread: threading.Thread) -> bool:
    return thread is not threading.main_thread() and type(thread).__module__ not in _EXPENDABLE


def _thread_names() -> Iterator[str]:
    for task in _TASKS.iterdir():
        with suppress(OSError):
            yield (task / "comm").read_text()


def _touched(counters: Any) -> bool:
    return bool(counters.peak_used_bytes or counters.host_allocs)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _open_sockets() -> bool:
    """Whether there are any but the standard streams."""
    return any(entry.is_socket() for entry in Path("/proc/self/fd").iterdir() if int(entry.name) > 2)


def _temporary_folders() -> bool:
    """Whether a tempfile.TemporaryDirectory is there: the end of one pass would take it from the next."""
    if "tempfile" not in sys.modules:
        return False
    finalizers: Any = weakref.finalize.__dict__["_registry"]
    cleanup = tempfile.TemporaryDirectory.__dict__["_cleanup"].__func__
    torchs = getattr(sys.modules.get(_TORCH_FOLDER), "_TEMP_DIR", None)
    return any(
        getattr(entry.func, "__func__", entry.func) is cleanup
        for finalizer, entry in list(finalizers.items())
        if finalizer is not getattr(torchs, "_finalizer", None)
    )
