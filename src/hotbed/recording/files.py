"""Where a recording is written: one file a rank."""

from __future__ import annotations

import os
from pathlib import Path

from hotbed.errors import UsageError
from hotbed.trace.layout import MAGIC


def rank() -> int | None:
    """Of this process in its distributed job, as torchrun and the like tell it; None if it is alone."""
    told, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(told) if told.isdigit() and world.isdigit() and int(world) > 1 else None


def path_of_rank(path: str | os.PathLike[str], number: int | None) -> Path:
    """`path` for the rank `number`: run.hbt becomes run.rank3.hbt."""
    found = Path(path)
    return found if number is None else found.with_name(f"{found.stem}.rank{number}{found.suffix}")


_LEAST_BYTES = 4096
"""a recording of nothing needs less"""


def make_room(path: Path) -> None:
    """Takes an earlier recording at `path` away. Raises UsageError where something else is, or where none can be written."""
    try:
        _make_room(path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="record into a file elsewhere"
        ) from None


def _make_room(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
        if head not in (b"", MAGIC):
            raise UsageError(f"{path} exists and is no recording", hint="give the name of a new file")
        path.unlink()
    elif path.exists():
        raise UsageError(f"{path} is no regular file", hint="give the name of a new file")
    elif not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.absolute().parent}", hint="make it first")
    # Said now, not by a traceback within the program.
    try:
        path.write_bytes(bytes(_LEAST_BYTES))
    finally:
        path.unlink(missing_ok=True)
