"""Reads the TOML files of this package and of the user into plain containers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError

if TYPE_CHECKING:
    from pathlib import Path


def read_table(path: Path) -> dict[str, Any]:
    """The TOML file at `path` as plain dicts, lists, numbers and strings.

    Raises HotbedError when the file is not TOML, OSError when it cannot be read.
    """
    try:
        return _parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise HotbedError(f"{path} is not UTF-8 text") from None
    except ValueError as error:
        raise HotbedError(f"{path} is not valid TOML: {error}") from None


def _parse(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib.loads(text)
    import tomlkit

    return tomlkit.parse(text).unwrap()
