"""Runs a program as `__main__`, the way CPython itself would start it."""

from __future__ import annotations

import importlib
import importlib.machinery
import linecache
import os
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_run_as_main: Any = runpy.__dict__["_run_module_as_main"]
"""what `python -m` itself calls"""


def launch(job: dict[str, Any]) -> None:
    """Runs what `job` names (fields of hotbed.predicting.program.Program); returns or raises as the program does."""
    # CPython's own frame, which holds this process's start, must not be what the program finds as __main__.
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    _STARTS[job["kind"]](main, job)


def _script(main: ModuleType, job: dict[str, Any]) -> None:
    path = job["target"]
    sys.argv = [path, *job["arguments"]]
    if Path(path).is_dir() or (not path.endswith(".py") and _is_archive(path)):
        # A folder or archive with __main__.py.
        sys.path.insert(0, path)
        _run_as_main("__main__", alter_argv=False)
        return
    _first_on_path(str(Path(path).resolve().parent))
    path = os.path.abspath(path)  # noqa: PTH100 - as CPython does it: dots go, links stay
    main.__file__ = path
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__["__cached__"] = None
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _is_archive(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _module(main: ModuleType, job: dict[str, Any]) -> None:
    sys.argv = ["-m", *job["arguments"]]
    _first_on_path(str(Path.cwd()))
    _run_as_main(job["target"])


def _stdin(main: ModuleType, job: dict[str, Any]) -> None:
    sys.argv = ["-", *job["arguments"]]
    _first_on_path("")
    main.__file__ = "<stdin>"
    _run_text(main, job["target"], "<stdin>")


def _callable(main: ModuleType, job: dict[str, Any]) -> None:
    module, _, qualname = job["target"].partition(":")
    sys.argv = ["", *job["arguments"]]
    _first_on_path("")
    if module == "source":
        _run_text(main, job["source"], "<notebook>")
        found: Any = main
    else:
        found = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    found()


def _run_text(main: ModuleType, text: str, name: str) -> None:
    # Tracebacks and inspect.getsource() look here.
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec", dont_inherit=True), main.__dict__)


def _first_on_path(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


_STARTS = {"script": _script, "module": _module, "stdin": _stdin, "callable": _callable}
OUR_FILES = frozenset({__file__, runpy.__file__, "<frozen runpy>"})
"""files of the frames between the start of the process and the program"""
