"""Which passes a program makes in children of one process: see hotbed.recording.checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hotbed.recording.checkpoint import PASSES
from hotbed.recording.draws import SEED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEARNING = "the program reads values from the GPU: learning them"
ANSWERING = "running it with the values that it will read"


def _words(name: str) -> str:
    if name.startswith(SEED):
        return f"sizes rest on guesses: running it with those of {name}"
    return LEARNING if name == "learn" else ANSWERING


class ForkedPasses:
    """What the process of the plain pass, whose folder is `folder`, has noted. `tell` gets it in words."""

    def __init__(self, folder: Path, tell: Callable[[str], None] | None) -> None:
        self._path, self._tell, self._told = folder / PASSES, tell, 1

    def modes(self) -> tuple[str, ...]:
        """Of all passes that have begun, but those with other guesses; empty where none was forked."""
        return tuple(name for name in self._begun() if not name.startswith(SEED))

    def _begun(self) -> list[str]:
        names: list[str] = json.loads(self._path.read_text()) if self._path.exists() else []
        return names

    def another_began(self) -> bool:
        """Whether a further pass has begun since the last call; tells so."""
        fresh = self._begun()[self._told :]
        self._told += len(fresh)
        for name in fresh:
            if self._tell is not None:
                self._tell(_words(name))
        return bool(fresh)
