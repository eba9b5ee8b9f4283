"""What one of the three kinds of pass does about reads, from before the program to after it."""

from __future__ import annotations

import json
import os
import random
import sys
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .following import follow, outlast_inference_mode
from .log import ReadLog
from .torch_there import torch

if TYPE_CHECKING:
    from types import TracebackType

    from .phantom import Phantom

Mode = Literal["plain", "learn", "answered"]

STOPPED_EXIT_STATUS = 77
"""of a plain pass that ended at its first read of bytes that are not certain"""

STOP_NOTE, ANSWERS, ROWS = "stopped-at-read", "answers", "reads.json"
"""Files in the folder of a run: why the plain pass stopped, the log of the phantom, the rows of finish()."""


class Session(AbstractContextManager["Session"]):
    """One pass; the program runs in its `with` block."""

    def __init__(self, mode: Mode, control: Phantom, folder: str, seed: int) -> None:
        self._mode = mode
        self._control = control
        self._folder = Path(folder)
        self._seed = seed
        self._stack = ExitStack()
        self._log: ReadLog | None = None

    def __enter__(self) -> Session:
        if self._mode == "learn":
            self._learn()
        return self

    def _learn(self) -> None:
        self._log = ReadLog(self._control)
        self._stack.enter_context(follow(self._control, self._log, self._seed))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def finish(self) -> list[dict[str, Any]]:
        """Rows of hotbed.predicting.script_run.Read. After "learn" it also writes what "answered" needs.

        A plain pass that got here has read certain bytes only, and does not know where.
        """
        if self._mode == "plain":
            return []
        path = self._folder / ROWS
        if self._mode == "answered":
            known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
            return known
        rows = self._log.rows() if self._log else []
        (self._folder / ANSWERS).write_bytes(self._control.read_log())
        path.write_text(json.dumps(rows), encoding="utf-8")
        return rows


def _seed_host(seed: int) -> None:
    """The passes must draw the same numbers on the host, or they would not ask the same questions."""
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def begin(mode: Mode, *, control: Phantom, folder: str, seed: int, draw: int = 0) -> Session:
    """Prepares this process for a pass; call it after `import torch` and before the program.

    "plain" ends the process with STOPPED_EXIT_STATUS at the first read that is not certain. "learn" follows small
    tensors on the CPU and writes every read into `folder`; guesses are drawn with `seed` + `draw`. "answered" answers
    reads as learnt there. Every pass seeds `random`, torch and numpy with `seed`, as a program that seeds nothing would
    differ from pass to pass. Raises OSError if `folder` cannot be used.
    """
    _seed_host(seed)
    outlast_inference_mode()
    return switch(mode, control=control, folder=folder, seed=seed, draw=draw)


def switch(mode: Mode, *, control: Phantom, folder: str, seed: int, draw: int = 0) -> Session:
    """As `begin`, in a forked child of a program that has not used the device yet; seeds nothing."""
    if mode == "plain":
        control.stop_at_uncertain_read(str(Path(folder) / STOP_NOTE))
    elif mode == "learn":
        _compile_nothing()
        control.log_reads(True)
    else:
        control.answer_reads((Path(folder) / ANSWERS).read_bytes())
    return Session(mode, control, folder, seed + draw)


def _compile_nothing() -> None:
    """A compiler would look into tensors that have other values; what it compiles is run eagerly instead."""
    os.environ["TORCHDYNAMO_DISABLE"] = os.environ["TORCH_COMPILE_DISABLE"] = "1"
    if "torch._dynamo" in sys.modules:
        # It has read its environment, and may have wrapped functions.
        torch.compiler.set_stance("force_eager")
