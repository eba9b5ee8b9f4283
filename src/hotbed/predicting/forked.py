"""Which passes a program makes in children of one process: see hotbed.recording.checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hotbed.recording.checkpoint import PASSES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEARNING = "the program reads values from the GPU: learning them"
ANSWERING = "running it with the values that it will read"


class ForkedPasses:
    """What the process of the plain pass, whose folder is `folder`, has noted. `tell` gets it in words."""

    def __init__(self, folder: Path, tell: Callable[[str], None] | None) -> None:
        self._path, self._tell, self._told = folder / PASSES, tell, 1

    def modes(self) -> tuple[str, ...]:
        """Of all passes that have begun; empty where none was forked."""
        return tuple(json.loads(self._path.read_text())) if self._path.exists() else ()

    def another_began(self) -> bool:
        """Whether a further pass has begun since the last call; tells so."""
        modes = self.modes()
        fresh = modes[self._told :]
        self._told += len(fresh)
        for mode in fresh:
            if self._tell is not None:
                self._tell(LEARNING if mode == "learn" else ANSWERING)
        return bool(fresh)
