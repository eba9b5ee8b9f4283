"""Entry point of a recorded process: `python boot.py RUNFOLDER` runs the program that RUNFOLDER/job.json describes.

Executed by path in the program's own interpreter, where hotbed may be missing or another one.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def borrow(package: Path) -> Any:
    """hotbed.recording.session from `package`, the folder of this hotbed.

    The names are in sys.modules only while they are imported: the program gets its own hotbed, or none.
    """
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "hotbed"}
    for name, folder in (("hotbed", package), ("hotbed.recording", package / "recording")):
        light = ModuleType(name)
        light.__path__ = [str(folder)]
        sys.modules[name] = light
    try:
        return importlib.import_module("hotbed.recording.session")
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "hotbed"]:
            del sys.modules[name]
        sys.modules.update(before)


def load(path: str) -> Any:
    """The module at `path`, known by no name to the program."""
    spec = importlib.util.spec_from_file_location(f"_hotbed_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while they are made.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Runs the program and ends as it does."""
    here = Path(__file__).resolve()
    # The program's own first entry takes the place of the folder of this file.
    sys.path = [folder for folder in sys.path if folder != sys.argv[0].rpartition("/")[0]]
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())
    session = borrow(here.parent.parent)
    sys.exit(session.record(job, folder, load(job["control"])))


if __name__ == "__main__":
    main()
