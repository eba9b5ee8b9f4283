"""Many replays of one trace: several configurations, several torches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from hotbed.errors import UsageError
from hotbed.replaying.api import Replayer, backend_of, gpu_for
from hotbed.replaying.program import compile_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hotbed.gpu import Gpu
    from hotbed.replaying.outcome import Outcome
    from hotbed.replaying.program import Program
    from hotbed.trace import Trace

_LINE = 'a line looks like {"settings": "expandable_segments:True", "cap_bytes": 17179869184}'


@dataclass(frozen=True)
class Configuration:
    """Settings as an env string and a cap in bytes (None: no cap)."""

    settings: str = ""
    cap_bytes: int | None = None


def read_matrix(path: Path) -> list[Configuration]:
    """Configurations of a file of JSON lines. Raises UsageError naming the line that is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text", hint=_LINE) from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(_configuration(line))
            except msgspec.DecodeError as error:
                raise UsageError(f"{path}, line {number}: {error}", hint=_LINE) from None
    if not found:
        raise UsageError(f"{path} has no configuration", hint=_LINE)
    return found


def _configuration(line: str) -> Configuration:
    raw = msgspec.json.decode(line, type=dict[str, Any])
    unknown = raw.keys() - {"settings", "cap_bytes"}
    if unknown:
        raise msgspec.ValidationError(f"unknown key {', '.join(sorted(unknown))}")
    return msgspec.convert(raw, Configuration)


def replay_all(
    trace: Trace,
    configurations: Sequence[Configuration],
    *,
    gpu: str | Gpu | None = None,
    pythons: Sequence[str | None] = (None,),
    detail: bool = False,
) -> list[Outcome]:
    """One outcome per torch and configuration, torches in the outer order. Each torch starts once per backend."""
    program = compile_trace(trace)
    card = gpu_for(gpu, program)
    outcomes = []
    for python in pythons:
        outcomes += _with_one_torch(trace, program, configurations, card, python, detail)
    return outcomes


def _with_one_torch(
    trace: Trace,
    program: Program,
    configurations: Sequence[Configuration],
    gpu: Gpu,
    python: str | None,
    detail: bool,
) -> list[Outcome]:
    found: dict[int, Outcome] = {}
    backends = [backend_of(configuration.settings) for configuration in configurations]
    for backend in dict.fromkeys(backends):
        mine = [index for index, other in enumerate(backends) if other == backend]
        with Replayer(gpu, python=python, backend=backend) as replayer:
            if detail:
                for index in mine:
                    one = configurations[index]
                    found[index] = replayer.replay(trace, program, one.settings, one.cap_bytes)
                continue
            pending = [
                (
                    index,
                    replayer.submit(
                        trace, program, configurations[index].settings, configurations[index].cap_bytes
                    ),
                )
                for index in mine
            ]
            found |= {index: result() for index, result in pending}
    return [found[index] for index in range(len(configurations))]
