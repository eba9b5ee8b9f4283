"""Finds in the program's source the line that fills a container, sets an attribute or adds to a variable."""

from __future__ import annotations

import ast
import linecache
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from hotbed.recording.reach import is_programs
from hotbed.trace.model import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from hotbed.recording.naming import Scope

    Match = Callable[[ast.AST], bool]

_GROWS = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "put",
        "put_nowait",
        "push",
        "setdefault",
        "update",
        "__setitem__",
    ]
)
_TO_HOST = frozenset(["item", "tolist", "cpu", "numpy"])
_PLAIN = frozenset(["float", "int", "len", "str", "bool", "round"])
_HOOKS = {
    "register_forward_hook": "_forward_hooks",
    "register_forward_pre_hook": "_forward_pre_hooks",
    "register_full_backward_hook": "_backward_hooks",
    "register_full_backward_pre_hook": "_backward_pre_hooks",
    "register_backward_hook": "_backward_hooks",
    "register_hook": "_backward_hooks",
    "register_state_dict_pre_hook": "_state_dict_pre_hooks",
}
"""method of torch → the attribute that it fills"""
_MOST_FILES = 40
_LONGEST = 30_000
"""lines of a file that is still parsed"""


class FillLines:
    """Remembers what it parsed. Every answer is None where the source is not there or does not say."""

    def __init__(self) -> None:
        self._sources: dict[str, _Source | None] = {}
        self._answers: dict[tuple[Any, ...], tuple[Frame | None, bool]] = {}
        self._modules_then = 0
        self._files_then: list[Any] = []

    def of(self, scope: Scope | None) -> Frame | None:
        """The line that fills what `scope` names."""
        return self._answer(scope)[0]

    def adds(self, scope: Scope | None) -> bool:
        """Whether that line keeps what was there before: `x += …`, `x = torch.cat([x, …])`, `x.append(…)`."""
        return self._answer(scope)[1]

    def _answer(self, scope: Scope | None) -> tuple[Frame | None, bool]:
        if scope is None:
            return None, False
        code = None if scope.code is None else (scope.code.co_filename, scope.code.co_firstlineno)
        key = (scope.kind, scope.name, scope.file, code, scope.owner, scope.keys)
        if key not in self._answers:
            self._answers[key] = self._find(scope)
        return self._answers[key]

    def _find(self, scope: Scope) -> tuple[Frame | None, bool]:
        if scope.kind == "line" and scope.code is not None:
            return Frame(scope.code.co_filename, int(scope.name), scope.code.co_name), False
        if scope.kind == "function":
            assert scope.code is not None
            return Frame(scope.code.co_filename, scope.code.co_firstlineno, scope.code.co_name), False
        for file in self._files(scope):
            source = self._source(file)
            if source is not None and scope.name in source.names:
                found = source.filling(scope)
                if found is not None:
                    return Frame(file, found.line, found.function), found.adds
        return None, False

    def _files(self, scope: Scope) -> Iterator[str]:
        if scope.owner is None:
            if scope.file is not None:
                yield scope.file
            return
        modules = [sys.modules.get(str(kind.__module__)) for kind in scope.owner.__mro__[:-1]]
        modules = [module for module in modules if module is not None and not _is_torchs(module)]
        files = [getattr(module, "__file__", None) for module in modules] + self._program_files()
        yield from list(dict.fromkeys(file for file in files if isinstance(file, str)))[:_MOST_FILES]

    def _program_files(self) -> list[Any]:
        if self._modules_then != len(sys.modules):
            self._modules_then = len(sys.modules)
            programs = [module for module in list(sys.modules.values()) if is_programs(module)]
            self._files_then = [getattr(module, "__file__", None) for module in programs]
        return self._files_then

    def _source(self, file: str) -> _Source | None:
        if file not in self._sources:
            self._sources[file] = _read(file)
        return self._sources[file]


def _is_torchs(module: ModuleType) -> bool:
    # What torch's own classes keep is not filled by a line of the program, or by one outside of their file.
    return str(vars(module).get("__name__")).split(".")[0] == "torch"


def _read(file: str) -> _Source | None:
    lines = linecache.getlines(file)
    if not lines or len(lines) > _LONGEST:
        return None
    try:
        return _Source(ast.parse("".join(lines)))
    except (SyntaxError, ValueError, RecursionError):
        return None


class _Statement(NamedTuple):
    """`target` gets something: `adds` to what is there, or is set. `rank`: the lower, the likelier it keeps GPU memory."""

    target: ast.AST
    adds: bool
    rank: int
    line: int
    function: str
    within: tuple[ast.AST, ...]


class _Source:
    """The statements of one file that fill something. `names`: every name and attribute in it."""

    def __init__(self, tree: ast.Module) -> None:
        self._statements: list[_Statement] = []
        self._calls: list[tuple[ast.Call, tuple[ast.AST, ...]]] = []
        self._functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.names: set[str] = set()
        self._collect(tree)

    def filling(self, scope: Scope) -> _Statement | None:
        """The line that adds; that of a function that the object is handed to; the line that sets."""
        match = _matcher(scope)
        line = scope.code.co_firstlineno if scope.kind == "local" and scope.code is not None else None
        found = [s for s in self._statements if _starts(s.within, line) and match(s.target)]
        adding = [statement for statement in found if statement.adds]
        if not adding:
            for parameter, function in self._handed_to(scope, line):
                adding += [
                    s for s in self._statements if s.adds and function in s.within and parameter(s.target)
                ]
        return min(adding or found, key=lambda statement: statement.rank, default=None)

    def _collect(self, tree: ast.Module) -> None:
        todo: list[tuple[ast.AST, bool, tuple[ast.AST, ...]]] = [(tree, False, ())]
        while todo:
            node, looped, within = todo.pop()
            if isinstance(node, ast.Name):
                self.names.add(node.id)
            elif isinstance(node, ast.Attribute):
                self.names.add(node.attr)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                within = (*within, node)
                if not isinstance(node, ast.Lambda):
                    self._functions.setdefault(node.name, node)
            for target, adds, values in _filled(node):
                if isinstance(target, ast.Attribute):
                    self.names.add(target.attr)
                rank = _rank(node, adds, values, looped)
                line = (isinstance(node, ast.Call) and target.end_lineno) or node.lineno  # type: ignore[attr-defined]
                function = next((f.name for f in reversed(within) if hasattr(f, "name")), "<module>")
                self._statements.append(_Statement(target, adds, rank, line, function, within))
            if isinstance(node, ast.Call):
                self._calls.append((node, within))
            looped |= isinstance(
                node, (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef)
            )
            todo += [(child, looped, within) for child in reversed(list(ast.iter_child_nodes(node)))]

    def _handed_to(self, scope: Scope, line: int | None) -> Iterator[tuple[Match, ast.AST]]:
        """(matches it there, function) for calls of functions of this file with the object, or what it lies in, as argument."""
        for call, within in self._calls:
            if (not call.args and not call.keywords) or not _starts(within, line):
                continue
            called = (
                call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
            )
            function = self._functions.get(str(called))
            if function is None:
                continue
            names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
            if names[:1] == ["self"]:
                names = names[1:]
            handed = list(zip(names, call.args, strict=False))
            handed += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
            for name, value in handed:
                for depth in range(len(scope.keys) + 1):
                    if _matcher(scope._replace(keys=scope.keys[:depth]))(value):
                        inside = scope._replace(kind="local", name=name, keys=scope.keys[depth:])
                        yield _matcher(inside), function


def _starts(within: tuple[ast.AST, ...], line: int | None) -> bool:
    """Whether one of these functions is that whose code object begins at `line`; None: any place will do."""
    return line is None or any(_first_line(function) == line for function in within)


def _first_line(function: ast.AST) -> int:
    decorators = getattr(function, "decorator_list", [])
    lines: list[int] = [part.lineno for part in (function, *decorators)]
    return min(lines)


def _filled(node: ast.AST) -> Iterator[tuple[ast.expr, bool, list[ast.expr]]]:
    """(what is filled, whether it is added to, with what) by `node`."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            yield node.func.value, True, node.args[-1:]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _HOOKS:
            table = ast.Attribute(node.func.value, _HOOKS[node.func.attr], end_lineno=node.func.end_lineno)
            yield table, True, node.args
    elif isinstance(node, ast.AugAssign):
        yield node.target, True, [node.value]
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target, value in (pair for whole in targets for pair in _unpacked(whole, node.value)):
            inside = ast.dump(target).replace("Store()", "Load()")
            again = any(ast.dump(p) == inside for p in ast.walk(value) if type(p) is type(target))
            yield target, again, [value]
            if isinstance(target, ast.Subscript):
                yield target.value, True, [value]


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with what it is given: its own part of a tuple that is written out, else the whole value."""
    if isinstance(target, (ast.Tuple, ast.List)):
        written = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        values = written if len(written) == len(target.elts) else [value] * len(target.elts)
        for part, given in zip(target.elts, values, strict=True):
            yield from _unpacked(part, given)
    else:
        yield target, value


def _rank(node: ast.AST, adds: bool, values: list[ast.expr], looped: bool) -> int:
    host = any(_host_only(value) for value in values)
    empty = not adds and any(isinstance(value, (ast.List, ast.Dict, ast.Constant)) for value in values)
    return 8 * empty + 4 * host + (not looped)


def _host_only(value: ast.AST) -> bool:
    """Whether `value` keeps nothing on the GPU as it is written."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            return value.func.attr in _TO_HOST or _host_only(value.func.value)
        return isinstance(value.func, ast.Name) and value.func.id in _PLAIN
    return False


def _matcher(scope: Scope) -> Match:
    def base(node: ast.AST) -> bool:
        if scope.kind == "attribute":
            return isinstance(node, ast.Attribute) and node.attr == scope.name
        return isinstance(node, ast.Name) and node.id == scope.name

    match: Match = base
    for key in scope.keys:
        match = _below(match, key)
    return match


def _below(match: Match, key: str) -> Match:
    def keyed(node: ast.AST) -> bool:
        if isinstance(node, ast.Subscript):
            return match(node.value) and (not isinstance(node.slice, ast.Constant) or node.slice.value == key)
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("get", "setdefault")
            and match(node.func.value)
        )

    return keyed
