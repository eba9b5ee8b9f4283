"""Starts a program on phantom GPUs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from hotbed.phantom.environment import environment, refuse_privileged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotbed.gpu import Gpu

LEAVE_WORKING_FOLDER = "import sys; sys.path = [folder for folder in sys.path if folder]\n"
"""How a program for `python -c` begins: a json.py or torch.py where the user happens to be is none of ours"""


def start(
    argv: Sequence[str],
    *,
    gpu: Gpu | str | None = None,
    count: int = 1,
    context: bool = False,
    others: int = 0,
    env: Mapping[str, str] | None = None,
    **popen: Any,
) -> subprocess.Popen[Any]:
    """Starts `argv` as a child process that sees `count` phantom GPUs of model `gpu` (default: one H200).

    `context` charges each process the memory of a CUDA context, as a real device does; without it every device byte
    in use was asked for by the program. `others` bytes of each GPU are another process's. `env` is the child's environment before the phantom is added to it (default:
    this process's); further arguments go to subprocess.Popen. Nothing is preloaded into this process.
    Raises PlatformError where the phantom cannot run, UsageError if `argv` names no program.
    """
    child = environment(gpu, count=count, context=context, others=others, base=env)
    refuse_privileged(argv[0], child)
    return subprocess.Popen(list(argv), env=child, **popen)
