"""The files that a recorded run leaves: report.json, and torch's snapshot with the history of all devices."""

from __future__ import annotations

import gc
import json
import os
import pickle
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hotbed.recording.limits import resident_bytes
from hotbed.recording.snapshot import snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.recording.history import History
    from hotbed.recording.session import Session

REPORT = "report.json"
SNAPSHOT = "snapshot.pickle"


def write_report(session: Session, ending: str, exit_code: int | None, error: dict[str, str] | None) -> None:
    """Writes both files into the session's folder; report.json last, so that it stands for a whole report."""
    control, torch = session.control, session.torch
    history, follower = session.history, session.follower
    libraries = control.libraries()
    report: dict[str, Any] = {
        "ending": ending,
        "exit_code": exit_code,
        "error": error,
        "torch": None if torch is None else torch.__version__,
        "cuda": None if torch is None else torch.version.cuda,
        "cudnn": _cudnn_version(torch, libraries),
        "pid": os.getpid(),
        "begun_us": session.begun_us,
        "time_us": time.time_ns() // 1000,
        "libraries": libraries,
        "workspaces": [_workspace(entry) for entry in control.workspaces()],
        "inflows": [[entry.address, entry.bytes, entry.unix_us] for entry in control.inflows()],
        "remarks": control.remarks(),
        "unmodelled": control.unmodelled(),
        "reads": session.reads(),
    }
    if history is not None and follower is not None:
        follower.look()
        report["devices"] = [_device(history, control, device) for device in history.devices()]
        report["marks"] = [asdict(mark) for mark in follower.marks]
        report["notes"] = [asdict(note) for note in follower.notes]
        report["rounds"] = [follower.stepped[step][0] for step in follower.rounds.ends_of_rounds()]
        report["optimizers"] = follower.optimizers()
        report["remarks"] += [follower.trouble] if follower.trouble else []
        if not history.missing and history.devices() and session.job["mode"] != "learn":
            _write_snapshot(torch, session.folder / SNAPSHOT)
    report["host_peak_bytes"] = max(resident_bytes("VmHWM"), session.host_peak_bytes)
    _write_whole(session.folder / REPORT, json.dumps(report))


def _device(history: History, control: Any, device: int) -> dict[str, int]:
    peaks = history.peaks(device)
    retries, ooms = history.failures(device)
    return {
        "device": device,
        "peak_allocated_bytes": peaks["allocated_bytes"],
        "peak_reserved_bytes": peaks["reserved_bytes"],
        "peak_driver_bytes": control.counters(device).peak_used_bytes,
        "alloc_retries": retries,
        "ooms": ooms,
    }


def _workspace(entry: Any) -> dict[str, Any]:
    return {
        "address": entry.address,
        "bytes": entry.bytes,
        "alternative_bytes": list(entry.alternative_bytes),
        "time_us": entry.unix_us,
        "library": entry.library,
        "device": entry.device,
    }


def _cudnn_version(torch: Any, libraries: dict[str, int]) -> str | None:
    """Of the cuDNN that the program used; to ask torch before that would load it."""
    if "cudnn" not in libraries:
        return None
    number = torch.backends.cudnn.version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _write_snapshot(torch: Any, path: Path) -> None:
    # Millions of small objects come and go at once: the collector would look at all of them again and again.
    enabled = gc.isenabled()
    gc.disable()
    try:
        with path.open("wb") as file:
            pickle.dump(snapshot(torch), file, protocol=4)
    finally:
        if enabled:
            gc.enable()


def _write_whole(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(text)
    unfinished.replace(path)
