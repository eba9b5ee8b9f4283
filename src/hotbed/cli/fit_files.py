"""Files that `hotbed fit` reads and writes beside the trace: hotbed.toml and the budget."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed import __version__
from hotbed.cli.printer import note
from hotbed.errors import UsageError
from hotbed.files import replacing
from hotbed.predicting.budget import against_budget, read_budget, with_budget
from hotbed.predicting.predictor import refuse_overwrite
from hotbed.settings import NEWEST, AllocatorSettings, installed_torch
from hotbed.settings.toml import FILE_NAME, NeedsSection, find_file, load, settings_in_force, write_needs

if TYPE_CHECKING:
    from hotbed.cli.fit_request import Request
    from hotbed.gpu import Gpu
    from hotbed.predicting import Prediction, Program

_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%?")


def check(request: Request) -> None:
    """Raises now what would else come out only after the program has run."""
    if request.trace_out is not None:
        refuse_overwrite(request.trace_out)
    if request.budget is None and (request.fail_over or request.update_budget):
        raise UsageError("--fail-over and --update-budget need --budget", hint="--budget memory.json")
    _percent(request.fail_over)
    for text in request.settings:
        AllocatorSettings.parse(text)
    if request.write:
        _refuse_unwritable(_toml())
    if request.budget is not None and (request.budget.exists() or not request.update_budget):
        read_budget(request.budget)


def _refuse_unwritable(path: Path) -> None:
    """Raises where [needs] could not go into the hotbed.toml at `path` later."""
    if path.exists():
        load(path)
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"--write: {path.parent.absolute()} is read-only")


def settings_in_file(gpu: Gpu) -> str | None:
    """Allocator settings that hotbed.toml gives; None where there are none, or the environment overrules them."""
    path = find_file(Path.cwd())
    if path is None:
        return None
    chosen = settings_in_force(None, os.environ, load(path), installed_torch() or NEWEST, gpu.name)
    return chosen.value.to_string() if chosen.origin == "file" else None


def keep(request: Request, program: Program, found: Prediction) -> bool:
    """Writes [needs] and the budget as asked; False where the peaks have outgrown the budget."""
    if found.program_failed or found.unknown is not None:
        return True
    if request.write:
        write_needs(_toml(), _needs(found))
        note(f"wrote {_toml()}")
    if request.budget is None:
        return True
    if request.update_budget:
        text = with_budget(request.budget, program, found)
        with replacing(request.budget) as stream:
            stream.write(text.encode())
        note(f"wrote {request.budget}")
        return True
    accepted = _percent(request.fail_over)
    growths = against_budget(request.budget, program, found)
    # What is over stands last: it decides the exit status.
    for growth in sorted(growths, key=lambda growth: growth.percent > accepted):
        note(f"{'over budget: ' if growth.percent > accepted else 'within budget: '}{growth}")
    return all(growth.percent <= accepted for growth in growths)


def _toml() -> Path:
    return find_file(Path.cwd()) or Path(FILE_NAME)


def _needs(found: Prediction) -> NeedsSection:
    return NeedsSection(
        gpu=found.gpu,
        nproc=1 + len(found.other_devices),
        nnodes=1,
        device_used_bytes=found.device_used_bytes,
        host_bytes=found.host_peak_bytes or None,
        made_by=f"hotbed fit {found.program} (hotbed {__version__})",
    )


def _percent(text: str | None) -> float:
    if text is None:
        return 0.0
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--fail-over {text}: not a percentage", hint="--fail-over 5%")
    return float(match[1])
