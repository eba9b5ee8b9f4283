"""Entry point of a recorded process: `python boot.py RUNFOLDER` runs the program that RUNFOLDER/job.json describes.

Executed by path in the program's own interpreter, where hotbed may be missing or another one.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType


class Borrowed:
    """This hotbed's modules, from the folder `package`. In a `with` block `import hotbed...` finds them.

    Outside of it the program gets its own hotbed, or none.
    """

    def __init__(self, package: Path) -> None:
        self._ours: dict[str, ModuleType] = {}
        self._theirs: dict[str, ModuleType] = {}
        for name, folder in (("hotbed", package), ("hotbed.recording", package / "recording")):
            light = ModuleType(name)
            light.__path__ = [str(folder)]
            self._ours[name] = light

    def __enter__(self) -> None:
        self._theirs = _taken_out()
        sys.modules.update(self._ours)

    def __exit__(self, *_: object) -> None:
        self._ours = _taken_out()
        sys.modules.update(self._theirs)


def _taken_out() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "hotbed"}


def main() -> None:
    """Runs the program and ends the process with its status."""
    here = Path(__file__).resolve()
    # The program's own first entry takes the place of the folder of this file.
    sys.path = [folder for folder in sys.path if folder != sys.argv[0].rpartition("/")[0]]
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())
    borrowed = Borrowed(here.parent.parent)
    with borrowed:
        ending = importlib.import_module("hotbed.recording.ending")
        task = importlib.import_module(f"hotbed.recording.{job['task']}")
    ending.leave(task.record(job, folder, borrowed))


if __name__ == "__main__":
    main()
