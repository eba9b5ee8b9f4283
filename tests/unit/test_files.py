"""files.replacing: the new file whole, or the old one untouched."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import UsageError
from hotbed.files import replacing

if TYPE_CHECKING:
    from pathlib import Path


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as stream:
        stream.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_link_and_the_mode_behind_it_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "file"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_only_files_are_replaced(kind: str, tmp_path: Path) -> None:
    """As root, a rename would put a file in the place of /dev/null."""
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(UsageError, match="no regular file"), replacing(path):
        pass
    assert not path.is_file()


def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught, replacing(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "file")


def test_an_error_names_the_file_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "no" / "file"
    with pytest.raises(FileNotFoundError) as caught, replacing(path):
        pass
    assert caught.value.filename == str(path)
