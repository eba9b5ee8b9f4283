"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hotbed.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream whose content takes the place of the file at `path` once the block ends; any failure leaves that as it was.

    A link stays, the file behind it is replaced; its mode stays, a new file has what the umask leaves of 0666.
    Raises UsageError where something else than a file is at `path`, OSError naming `path` where it cannot be written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise UsageError(f"{path} is no regular file", hint="give the name of a file to write")
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        # The caller knows no name but its own.
        if isinstance(error, OSError):
            error.filename, error.filename2 = os.fspath(path), None
        raise


def _umask() -> int:
    """The umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
