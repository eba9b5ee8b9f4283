"""How Python reaches an object, in words: "__main__.losses", "Trainer.cache['k']", "local `outs` of validate()"."""

from __future__ import annotations

import sys
from collections import deque
from types import CellType, FrameType, FunctionType, GeneratorType, MemberDescriptorType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from hotbed.recording.reach import Way, is_cache, local_variables

if TYPE_CHECKING:
    from types import CodeType

    from hotbed.recording.reach import Walk

_ANY = "[…]"
_TRANSPARENT = ("_parameters", "_buffers", "_modules")
"""dicts of torch.nn.Module: what they hold is an attribute to the program"""


class Scope(NamedTuple):
    """Where source code names an object. `kind`: "module", "local", "attribute", "closure" or "function"; `name` is its name
    there (of a "line" its number), `keys` the string keys below it; `code` that of the function, `owner` the class that has the attribute."""

    kind: str
    name: str
    file: str | None = None
    code: CodeType | None = None
    owner: type | None = None
    keys: tuple[str, ...] = ()


class Name(NamedTuple):
    """`path` in words. `scope`: None where no source code names it. `row`: it owns what is below it. `kind` as in Holding."""

    path: str
    scope: Scope | None
    kind: str
    row: bool


_CONTAINERS = (list, dict, set, deque)


class Names:
    """Names of the objects of a walk, worked out when they are asked for."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._names: dict[int, Name] = {}
        self._keys: dict[int, dict[int, Any]] = {}

    def of(self, at: int) -> Name:
        """Of the object that the walk has at index `at`."""
        chain = []
        while at >= 0 and at not in self._names:
            chain.append(at)
            at = self._walk.parents[at]
        for index in reversed(chain):
            self._names[index] = self.child(self._walk.objects[index], self._walk.parents[index])
        return self._names[chain[0] if chain else at]

    def child(self, item: Any, parent: int) -> Name:
        """Of `item`, to which the object at index `parent` refers; that one has its name already."""
        if parent < 0:
            root = self._walk.roots[~parent]
            if root.kind == "exception":
                scope = None if root.code is None else Scope("line", str(root.line), root.file, root.code)
                return Name(f"exception {root.name}", scope, "traceback", True)
            return Name(root.name, None, root.kind, False)
        holder, above = self._walk.objects[parent], self.of(parent)
        named = self._named(item, parent, holder, above)
        if is_cache(item):
            code = getattr(item.__wrapped__, "__code__", None)
            scope = None if code is None else Scope("function", code.co_name, code.co_filename, code)
            return named._replace(scope=scope, kind="container", row=True)
        named = named._replace(row=named.row or self._owns(item, named))
        return named._replace(kind=_kind(item, named))

    def _owns(self, item: Any, named: Name) -> bool:
        if isinstance(item, BaseException):
            return True
        return isinstance(item, _CONTAINERS) and not named.path.endswith(_ANY) and named.kind != "inner"

    def _named(self, item: Any, parent: int, holder: Any, above: Name) -> Name:
        kind = type(holder)
        if issubclass(kind, dict):
            return self._in_dict(item, parent, holder, above)
        if issubclass(kind, (list, tuple, set, frozenset, deque)):
            if above.kind == "free variables":
                return self._cell(item, parent, above)
            path = above.path if above.path.endswith(_ANY) else above.path + _ANY
            return Name(path, above.scope, "element", False)
        if kind is CellType:
            return above._replace(kind="closure", row=self._walk.ways[type(item)] == Way.TENSOR)
        if kind is FunctionType:
            return _of_function(item, holder)
        if kind is TracebackType:
            return above
        if kind is FrameType:
            return _local_of(item, holder, f" in the traceback of {above.path}", "traceback")
        if kind is GeneratorType and holder.gi_frame is not None:
            return _local_of(item, holder.gi_frame, "", "variable")
        if issubclass(kind, BaseException) and type(item) in (TracebackType, kind):
            return above._replace(kind="traceback", row=False)
        if is_cache(holder):
            return above._replace(kind="element", row=False)
        return self._attribute(item, parent, holder, above)

    def _in_dict(self, item: Any, parent: int, holder: dict[Any, Any], above: Name) -> Name:
        key = self._key(item, parent, holder)
        if self._walk.parents[parent] < 0:
            return self._variable(key, self._walk.roots[~self._walk.parents[parent]])
        owner = self._walk.objects[self._walk.parents[parent]]
        if above.kind == "inner":
            # The instance's own dict, or one of a module's tables.
            return _attribute(owner if not isinstance(owner, dict) else self._owner_above(parent), key, above)
        if isinstance(key, str) and above.scope is not None and _ANY not in above.path:
            scope = above.scope._replace(keys=(*above.scope.keys, key))
            return Name(f"{above.path}['{key}']", scope, "element", False)
        path = above.path if above.path.endswith(_ANY) else above.path + _ANY
        return Name(path, above.scope, "element", False)

    def _owner_above(self, at: int) -> Any:
        while at >= 0 and isinstance(self._walk.objects[at], dict):
            at = self._walk.parents[at]
        return self._walk.objects[at] if at >= 0 else None

    def _variable(self, key: Any, root: Any) -> Name:
        if root.kind == "local":
            return Name(
                f"local `{key}` of {root.name}()",
                Scope("local", str(key), root.file, root.code),
                "variable",
                True,
            )
        return Name(f"{root.name}.{key}", Scope("module", str(key), root.file), "variable", True)

    def _cell(self, item: Any, parent: int, above: Name) -> Name:
        function = self._walk.objects[self._walk.parents[parent]]
        cells = function.__closure__ or ()
        code = function.__code__
        name = next((n for n, cell in zip(code.co_freevars, cells, strict=False) if cell is item), "?")
        path = f"closure `{name}` of {function.__qualname__}()"
        return Name(path, Scope("closure", name, code.co_filename, code), "closure", False)

    def _attribute(self, item: Any, parent: int, holder: Any, above: Name) -> Name:
        if isinstance(holder, type):
            return _attribute(holder, self._key(item, parent, vars(holder)), above)
        own = _own_dict(holder)
        if own is not None and item is own:
            return above._replace(kind="inner", row=False)
        name = self._key(item, parent, own or {})
        if name is None:
            name = _slot(item, holder)
        if name is None:
            return Name(f"{above.path}<{type(holder).__name__}>", above.scope, "attribute", False)
        return _attribute(holder, name, above)

    def _key(self, item: Any, parent: int, holder: Any) -> Any:
        if parent not in self._keys:
            self._keys[parent] = {id(value): key for key, value in list(holder.items())}
        return self._keys[parent].get(id(item))


def _attribute(holder: Any, name: Any, above: Name) -> Name:
    """Instances of a class share a name: a hundred layers, or the entries of a list, are one owner to the reader."""
    if name in _TRANSPARENT:
        return above._replace(kind="inner", row=False)
    kind = holder if isinstance(holder, type) else type(holder)
    if str(kind.__module__).split(".")[0] in sys.stdlib_module_names and not isinstance(holder, type):
        # The program knows its queue by the variable, and not by what is in it.
        return Name(f"{above.path}.{name}", above.scope, "attribute", False)
    return Name(f"{kind.__qualname__}.{name}", Scope("attribute", str(name), owner=kind), "attribute", True)


def _own_dict(holder: Any) -> dict[str, Any] | None:
    """The __dict__ of an instance, never through code of the program."""
    if not type(holder).__dictoffset__:
        return None
    try:
        own = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return None
    return own if type(own) is dict else None


def _slot(item: Any, holder: Any) -> str | None:
    for kind in type(holder).__mro__:
        for name, slot in vars(kind).items():
            if type(slot) is MemberDescriptorType and _slot_value(slot, holder) is item:
                return name
    return None


def _slot_value(slot: Any, holder: Any) -> Any:
    try:
        return slot.__get__(holder)
    except AttributeError:
        return None


def _of_function(item: Any, function: FunctionType) -> Name:
    code = function.__code__
    if item is function.__closure__:
        return Name("", None, "free variables", False)
    scope = Scope("function", function.__name__, code.co_filename, code)
    what = "attributes" if item is function.__dict__ else "defaults"
    return Name(f"{what} of {function.__qualname__}()", scope, "container", False)


def _local_of(item: Any, frame: FrameType, suffix: str, kind: str) -> Name:
    code = frame.f_code
    name = next((key for key, value in local_variables(frame).items() if value is item), None)
    words = f"local `{name}`" if name else "a value"
    scope = Scope("local", name, code.co_filename, code) if name else None
    return Name(f"{words} of {code.co_name}(){suffix}", scope, kind, name is not None)


def _kind(item: Any, named: Name) -> str:
    if named.kind == "traceback" or isinstance(item, (BaseException, TracebackType)):
        return "traceback"
    if named.row and isinstance(item, _CONTAINERS):
        return "container"
    return named.kind
