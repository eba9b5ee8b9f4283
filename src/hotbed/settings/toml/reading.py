"""Finds and reads hotbed.toml, and reports everything that is wrong with it at once, each with its line."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import InlineTable, Item, Table

from hotbed.errors import SettingsError
from hotbed.settings.allocator import read_settings
from hotbed.settings.grammar import did_you_mean
from hotbed.settings.toml.forms import NotThisFormError
from hotbed.settings.toml.model import (
    FILE_NAME,
    FREE_SECTIONS,
    SCHEMA,
    SECTIONS,
    HotbedToml,
    MemorySection,
    keys_of,
    same_gpu,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tomlkit.container import Container

_MARK = "#hotbed-line-mark"
KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the file: `line` counts from 1, None if it is nowhere in particular."""

    line: int | None
    message: str
    hint: str | None = None


class TomlError(SettingsError):
    """A hotbed.toml cannot be used; `problems` holds all that is wrong with it."""

    def __init__(self, path: Path, problems: tuple[Problem, ...]) -> None:
        lines = [
            f"{path}{f':{problem.line}' if problem.line else ''}: {problem.message}" for problem in problems
        ]
        super().__init__("\n".join(lines), hint=next((p.hint for p in problems if p.hint), None))
        self.path = path
        self.problems = problems


def find_file(start: Path) -> Path | None:
    """The hotbed.toml in `start` or in the nearest folder above it; None if there is none."""
    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).is_file():
            return candidate / FILE_NAME
    return None


def load(path: Path) -> HotbedToml:
    """Reads a hotbed.toml. Raises TomlError naming every problem, OSError if the file cannot be read."""
    return read_document(parse_document(path.read_bytes(), path), path)


def parse_document(content: bytes, path: Path) -> tomlkit.TOMLDocument:
    """The file as a document that keeps comments and order. Raises TomlError."""
    try:
        return tomlkit.parse(content.decode())
    except UnicodeDecodeError as error:
        raise TomlError(path, (Problem(None, "is not UTF-8 text"),)) from error
    except ParseError as error:
        reason = str(error).rsplit(" at line", 1)[0]
        raise TomlError(path, (Problem(error.line, f"is not valid TOML: {reason}"),)) from error
    except TOMLKitError as error:
        raise TomlError(path, (Problem(None, f"is not valid TOML: {error}"),)) from error


def read_document(document: tomlkit.TOMLDocument, path: Path) -> HotbedToml:
    """The values of a parsed file. Raises TomlError naming every problem."""
    reader = _Reader(document)
    result = reader.file(path)
    if reader.problems:
        raise TomlError(path, tuple(sorted(reader.problems, key=lambda problem: problem.line or 0)))
    return result


class _Reader:
    """Turns plain containers into sections and collects problems."""

    def __init__(self, document: tomlkit.TOMLDocument) -> None:
        self._document = document
        self._data: dict[str, Any] = document.unwrap()
        self.problems: list[Problem] = []

    def file(self, path: Path) -> HotbedToml:
        self._schema()
        sections: dict[str, Any] = {"path": path}
        for name, value in self._data.items():
            if name == "schema":
                continue
            if name not in SECTIONS and name not in FREE_SECTIONS:
                self._unknown((name,), [*SECTIONS, *FREE_SECTIONS], "is no section of hotbed.toml")
            elif not isinstance(value, dict):
                self._problem((name,), f"{name} must be a table", f"write [{name}] on a line of its own")
            elif name in FREE_SECTIONS:
                sections[name] = value
            elif name == "memory":
                sections["memory"], sections["memory_by_gpu"] = self._memory(value)
            else:
                sections[name] = self._section(SECTIONS[name], (name,), value)
        return HotbedToml(**sections)

    def _schema(self) -> None:
        schema = self._data.get("schema")
        if schema is None:
            self._problem((), "has no schema", f"write schema = {SCHEMA} on its first line")
        elif type(schema) is not int or schema != SCHEMA:
            self._problem(
                ("schema",), f"schema {schema!r} is not known; this hotbed reads schema {SCHEMA}", None
            )

    def _memory(self, table: dict[str, Any]) -> tuple[MemorySection, tuple[tuple[str, MemorySection], ...]]:
        own = {name: value for name, value in table.items() if not isinstance(value, dict)}
        by_gpu = {name: value for name, value in table.items() if isinstance(value, dict)}
        names = list(by_gpu)
        for index, name in enumerate(names):
            twins = [other for other in names[:index] if same_gpu(other, name)]
            if twins:
                self._problem(
                    ("memory", name), f"{name!r} and {twins[0]!r} are the same GPU", "keep one of them"
                )
        sections = [
            (name, self._section(MemorySection, ("memory", name), by_gpu[name])) for name in sorted(names)
        ]
        return self._section(MemorySection, ("memory",), own), tuple(sections)

    def _section(self, section: type, where: KeyPath, table: dict[str, Any]) -> Any:
        keys = {key.name: key for key in keys_of(section)}
        values = {}
        for name, value in table.items():
            path = (*where, name)
            if name not in keys:
                self._unknown(path, list(keys), f"is no key of [{'.'.join(where)}]")
                continue
            try:
                values[keys[name].field] = keys[name].form.read(value)
            except NotThisFormError as error:
                reason = f": {error}" if str(error) else ""
                self._problem(path, f"{name} must be {keys[name].form.description}{reason}", None)
        result = section(**values)
        if isinstance(result, MemorySection) and result.settings and result.backend:
            self._backend(result, where)
        return result

    def _backend(self, section: MemorySection, where: KeyPath) -> None:
        reading = read_settings(section.settings or "")
        if "backend" in reading.named and reading.settings.backend != section.backend:
            message = f"backend is {section.backend}, but settings say backend:{reading.settings.backend}"
            self._problem((*where, "backend"), message, "keep one of the two")

    def _unknown(self, path: KeyPath, known: list[str], what: str) -> None:
        hint = did_you_mean(path[-1].lower(), known) or "known: " + ", ".join(known)
        self._problem(path, f"{path[-1]!r} {what}", hint)

    def _problem(self, path: KeyPath, message: str, hint: str | None) -> None:
        self.problems.append(Problem(line_of(self._document, path), message, hint))


def line_of(document: tomlkit.TOMLDocument, path: KeyPath) -> int | None:
    """Line, counted from 1, on which the item at `path` begins; None for the file as a whole.

    tomlkit keeps no positions, so the item is marked in a copy and the mark is looked for in the copy's text.
    """
    marked = copy.deepcopy(document)
    item = _find(marked, path)
    while isinstance(item, Table) and item.is_super_table():
        # Never written: [memory."NVIDIA H200"] alone makes such a table for memory.
        item = next(child for key, child in item.value.body if key is not None)
    if item is None:
        return None
    item.trivia.comment = _MARK
    before, _, _ = marked.as_string().partition(_MARK)
    inside = 0 if isinstance(item, Table) else item.as_string().count("\n")
    return before.count("\n") + 1 - inside


def _find(container: Container, path: KeyPath) -> Item | None:
    """The item at `path`, or the inline table around it: nothing inside one has a line of its own."""
    for key, item in container.body:
        if key is None or not path or key.key != path[0]:
            continue
        inner = _find(item.value, path[1:]) if isinstance(item, Table) else None
        if inner is not None or len(path) == 1 or isinstance(item, InlineTable):
            return item if inner is None else inner
    return None
