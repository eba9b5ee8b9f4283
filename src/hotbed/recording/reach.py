"""Everything that the program's names reach: a bounded walk over Python's objects, from module and local variables down."""

from __future__ import annotations

import gc
import sys
import sysconfig
import threading
import time
from enum import IntEnum
from functools import _lru_cache_wrapper
from os.path import dirname
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ReferenceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OURS = dirname(dirname(__file__))  # noqa: PTH120 - as code objects name it
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")})
_LIBRARIES = (*_INSTALLED, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_CLOSED = (
    "torch.fx",
    "torch._",
    "torch.jit",
    "torch.library",
    "logging",
    "importlib",
    "sympy",
    "_frozen_importlib",
)
"""packages whose objects keep nothing of the program"""
ENDING = "that ends the program"
"""in the names of what only the exception holds that ends the program: nobody has kept it"""
_HAS_REFERENCES = 1 << 14
"""Py_TPFLAGS_HAVE_GC: objects of a type without it refer to nothing"""
_OPTIMIZED = 1
"""CO_OPTIMIZED: the frame of a function, whose variables lie in no dict"""
_CROWD = 4096
"""of a container with more objects than this, so many are looked into first"""
_PROBE = 512


class Way(IntEnum):
    """What the walk does with objects of a type."""

    SKIP = 0
    TENSOR = 1
    DESCEND = 2
    FUNCTION = 3
    CLASS = 4
    OPTIMIZER = 5


class Root(NamedTuple):
    """Where names begin. `kind`: "module", "local" or "exception"; `name` of the module, or of the function."""

    kind: str
    name: str
    code: CodeType | None = None
    file: str | None = None
    line: int | None = None


class Walk:
    """Breadth first, so that the path to an object is the shortest. Keeps references: drop it soon.

    `objects[i]` was reached from `objects[parents[i]]`; a parent below 0 is root ~parent. `tensors` are (tensor, index of
    what refers to it). `complete`: the time was enough. `deadline` is one of time.thread_time().
    """

    def __init__(self, torch: Any, deadline: float) -> None:
        self._deadline = deadline
        self.ways = _Ways(torch)
        self.objects: list[Any] = []
        self.parents: list[int] = []
        self.tensors: list[tuple[Any, int]] = []
        self.roots: list[Root] = []
        self.complete = True
        self._modules = {id(vars(module)) for module in _modules()}
        self.seen = set(self._modules)
        self._torch_files = dirname(torch.__file__)  # noqa: PTH120 - as code objects name them

    def program(self, ended_by: BaseException | None = None) -> None:
        """From the program's modules, the local variables of every thread, and exceptions.

        The functions that `ended_by` ended count as running.
        """
        self._run(_program_roots((_OURS, self._torch_files), ended_by))

    def libraries(self) -> None:
        """From the modules of installed packages, but torch."""
        self._run(_library_roots(self.ways))

    def _run(self, roots: Iterable[tuple[Root, Any]]) -> None:
        at = len(self.objects)
        for root, start in roots:
            self.roots.append(root)
            self._add(start, ~(len(self.roots) - 1))
        while at < len(self.objects):
            if not at & 255 and time.thread_time() > self._deadline:
                self.complete = False
                return
            self._look(at)
            at += 1

    def _add(self, item: Any, parent: int) -> None:
        self.seen.add(id(item))
        self.objects.append(item)
        self.parents.append(parent)

    def _look(self, at: int) -> None:
        children = self.children(self.objects[at])
        ways, seen = self.ways, self.seen
        if len(children) > 16 and not any(map(ways.__getitem__, set(map(type, children)))):
            return
        if len(children) > _CROWD and not self._promising(children):
            return
        for child in children:
            way = ways[type(child)]
            if way == Way.TENSOR:
                self.tensors.append((child, at))
                if id(child) in seen:
                    continue
            elif (
                not way or id(child) in seen or (way == Way.CLASS and _closed(vars(child).get("__module__")))
            ):
                continue
            elif way == Way.OPTIMIZER:
                # Parameters belong to their modules; the optimizer only steps them.
                seen.add(id(vars(child).get("param_groups")))
            self._add(child, at)

    def children(self, item: Any) -> list[Any]:
        """What `item` refers to; of functions and classes only what may be the program's data."""
        way = self.ways[type(item)]
        if way == Way.CLASS:
            return list(vars(item).values())
        if way == Way.FUNCTION:
            return [item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__]
        return gc.get_referents(item)

    def _promising(self, children: list[Any]) -> bool:
        """Whether some of a crowd hold a tensor: a data set of a million samples need not be walked through."""
        step = max(len(children) // _PROBE, 1)
        level = [child for child in children[::step] if self.ways[type(child)]]
        for _ in range(3):
            if Way.TENSOR in set(map(self.ways.__getitem__, set(map(type, level)))):
                return True
            level = [item for item in gc.get_referents(*level) if self.ways[type(item)] in (1, 2)][
                : _PROBE * 8
            ]
        return False


class _Ways(dict[type, int]):
    """Type → Way, worked out when a type is met."""

    def __init__(self, torch: Any) -> None:
        self._tensor, self._optimizer = torch.Tensor, torch.optim.Optimizer

    def __missing__(self, kind: type) -> int:
        self[kind] = way = self._way(kind)
        return way

    def _way(self, kind: type) -> int:
        if issubclass(kind, self._tensor):
            return Way.TENSOR
        if issubclass(kind, self._optimizer):
            return Way.OPTIMIZER
        if issubclass(kind, type):
            return Way.CLASS
        if kind is FunctionType:
            return Way.FUNCTION
        if not kind.__flags__ & _HAS_REFERENCES or issubclass(kind, _NEVER) or kind.__name__ == "dtype":
            return Way.SKIP
        return Way.SKIP if _closed(kind.__module__) else Way.DESCEND


_NEVER = (ModuleType, CodeType, BuiltinFunctionType, ReferenceType, GetSetDescriptorType, property)


def _closed(module: Any) -> bool:
    return not isinstance(module, str) or module.startswith(_CLOSED)


def _modules() -> list[ModuleType]:
    return [module for module in list(sys.modules.values()) if type(module) is ModuleType]


def is_programs(module: ModuleType) -> bool:
    """Whether `module` is none of Python's, nor installed."""
    file = vars(module).get("__file__")
    if vars(module).get("__name__") == "__main__":
        return True
    return isinstance(file, str) and not file.startswith((*_LIBRARIES, _OURS))


def in_program(code: CodeType) -> bool:
    """Whether `code` is of the program's own files."""
    return not in_library(code.co_filename)


def in_library(filename: str) -> bool:
    """Whether `filename` is Python's, hotbed's or an installed package's."""
    return filename.startswith((*_LIBRARIES, _OURS, "<frozen"))


def _program_roots(
    passed_over: tuple[str, ...], ended_by: BaseException | None
) -> Iterator[tuple[Root, Any]]:
    for module in _modules():
        if is_programs(module):
            yield _root(module), vars(module)
    for frame in list(sys._current_frames().values()):
        yield from _frames(frame, passed_over)
    passed = ended_by.__traceback__ if ended_by is not None else None
    while passed is not None:
        yield from _variables(passed.tb_frame, passed_over)
        passed = passed.tb_next
    for error in _exceptions():
        if error is not ended_by:
            yield _handled(error), error
    if ended_by is not None:
        yield Root("exception", ENDING), ended_by


def _library_roots(ways: _Ways) -> Iterator[tuple[Root, Any]]:
    for module in _modules():
        root = _root(module)
        installed = (root.file or "").startswith(_INSTALLED) and not is_programs(module)
        if installed and not root.name.startswith(("torch", *_CLOSED)):
            held = {
                key: value
                for key, value in list(vars(module).items())
                if ways[type(value)] in (Way.TENSOR, Way.DESCEND) and not key.startswith("__")
            }
            if held:
                yield root, held


def _root(module: ModuleType) -> Root:
    file = vars(module).get("__file__")
    return Root("module", str(vars(module).get("__name__")), file=file if isinstance(file, str) else None)


def _frames(frame: FrameType | None, passed_over: tuple[str, ...]) -> Iterator[tuple[Root, Any]]:
    while frame is not None:
        yield from _variables(frame, passed_over)
        frame = frame.f_back


def _variables(frame: FrameType, passed_over: tuple[str, ...]) -> Iterator[tuple[Root, Any]]:
    code = frame.f_code
    own_names = code.co_flags & _OPTIMIZED or frame.f_locals is not frame.f_globals
    if own_names and not code.co_filename.startswith(passed_over):
        yield Root("local", code.co_name, code, code.co_filename), local_variables(frame)


def line_of_the_program() -> dict[str, Any] | None:
    """The innermost line of the program's own files that runs now, as the fields of hotbed.trace.Frame: on this thread, else
    on the main one, which waits while a backward pass runs on autograd's."""
    found = _line_of(sys._getframe(1))
    main = threading.main_thread()
    # A function that held its own frame would keep all that the frames above it hold.
    if found is None and threading.current_thread() is not main:
        found = _line_of(sys._current_frames().get(main.ident or 0))
    return found


def _line_of(frame: FrameType | None) -> dict[str, Any] | None:
    while frame is not None and not in_program(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code
    return {"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name}


def local_variables(frame: FrameType) -> dict[str, Any]:
    """A copy. Up to Python 3.12 the frame itself keeps one too, and so would keep what the function drops."""
    names = frame.f_locals
    found = dict(names)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & _OPTIMIZED and sys.getrefcount(names) == 3:
        # Nobody but the frame and this function has it: no locals() of the program.
        names.clear()
    return found


def _handled(error: BaseException) -> Root:
    """With the line at which the function that has caught `error` is now."""
    trace = error.__traceback__
    while trace is not None and not in_program(trace.tb_frame.f_code):
        trace = trace.tb_next
    if trace is None:
        return Root("exception", type(error).__name__)
    return Root("exception", type(error).__name__, trace.tb_frame.f_code, line=trace.tb_frame.f_lineno)


def _exceptions() -> list[BaseException]:
    last = [getattr(sys, name, None) for name in ("last_exc", "last_value")]
    handled = [item[1] if isinstance(item, tuple) else item for item in sys._current_exceptions().values()]
    errors = [error for error in (*last, *handled) if isinstance(error, BaseException)]
    return list({id(error): error for error in errors}.values())


def is_cache(item: Any) -> bool:
    """Whether `item` is a function under functools.lru_cache."""
    return type(item) is _lru_cache_wrapper
