"""Writes sections of hotbed.toml in place: comments, order and everything else stay as they are."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.items import InlineTable, Table

from hotbed.errors import InternalError, UsageError
from hotbed.files import replacing
from hotbed.settings.toml.model import SCHEMA, HotbedToml, MemorySection, NeedsSection, keys_of, same_gpu
from hotbed.settings.toml.reading import parse_document, read_document

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from pathlib import Path


def write_memory(path: Path, section: MemorySection, gpu_name: str | None = None) -> None:
    """Makes [memory], or with `gpu_name` the table of that GPU, say exactly what `section` says.

    Creates the file when it is absent. Raises TomlError if the file is invalid as it is, UsageError for a section
    that says nothing; the file is then, as after any other failure, untouched.
    """
    if gpu_name is None:
        _write(path, ("memory",), section)
    else:
        _write(path, ("memory", gpu_name), section)


def write_needs(path: Path, section: NeedsSection) -> None:
    """Makes [needs] say exactly what `section` says; otherwise like write_memory."""
    _write(path, ("needs",), section)


def _write(path: Path, where: tuple[str, ...], section: MemorySection | NeedsSection) -> None:
    if section == type(section)():
        raise UsageError(f"there is nothing to write into [{'.'.join(where)}]")
    content = path.read_bytes() if path.exists() else f"schema = {SCHEMA}\n".encode()
    document = parse_document(content, path)
    expected = _expected(read_document(document, path), where, section)
    _edit(document, where, section)
    text = tomlkit.dumps(document).rstrip("\n") + "\n"
    if read_document(parse_document(text.encode(), path), path) != expected:
        raise InternalError(
            f"{path} was left as it was: editing it would have changed more than [{'.'.join(where)}]"
        )
    with replacing(path) as stream:
        stream.write(text.encode())


def _edit(
    document: tomlkit.TOMLDocument, where: tuple[str, ...], section: MemorySection | NeedsSection
) -> None:
    parent: Any = document
    if len(where) == 2:
        parent = _inside(document, where[0], operator.eq)
        if parent is None:
            parent = document.setdefault(where[0], tomlkit.table(is_super_table=True))
    existing = _inside(parent, where[-1], same_gpu if len(where) == 2 else operator.eq)
    if existing is not None:
        _fill(existing, section)
        return
    # Filled first: tomlkit copies a table that it puts among tables standing apart.
    new: Any = tomlkit.inline_table() if isinstance(parent, InlineTable) else tomlkit.table()
    _fill(new, section)
    if isinstance(new, Table):
        new.add(tomlkit.nl())
    parent[where[-1]] = new


def _expected(
    before: HotbedToml, where: tuple[str, ...], section: MemorySection | NeedsSection
) -> HotbedToml:
    """The file's values with `section` in its place and nothing else changed."""
    if isinstance(section, NeedsSection):
        return replace(before, needs=section)
    if len(where) == 1:
        return replace(before, memory=section)
    by_gpu = [(name, section if same_gpu(name, where[1]) else old) for name, old in before.memory_by_gpu]
    if not any(same_gpu(name, where[1]) for name, _ in by_gpu):
        by_gpu.append((where[1], section))
    return replace(before, memory_by_gpu=tuple(sorted(by_gpu)))


def _inside(table: Any, name: str, same: Callable[[str, str], bool]) -> Any:
    """The table in `table` whose name is the `same` as `name`; None without one."""
    return next((value for key, value in table.items() if isinstance(value, dict) and same(key, name)), None)


def _fill(table: MutableMapping[str, Any], section: MemorySection | NeedsSection) -> None:
    values = {key.name: getattr(section, key.field) for key in keys_of(type(section))}
    # Removed last: a table that is empty for a moment can lose its header and comments.
    table.update({name: value for name, value in values.items() if value is not None})
    for name, value in values.items():
        if value is None and name in table:
            del table[name]
