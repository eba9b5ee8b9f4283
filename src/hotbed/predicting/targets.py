"""What hotbed.fit is asked about: a path, a module or a Python callable, as a Program."""

from __future__ import annotations

import inspect
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import UsageError
from hotbed.predicting.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HINT = "move it to the top level of a file that can be imported, with what it needs made inside it"


def program_of(
    target: str | os.PathLike[str] | Callable[[], object],
    arguments: Sequence[str] = (),
    *,
    python: str | None = None,
) -> Program:
    """`target` as a Program: a file, or a function without arguments that trains.

    Raises UsageError for a file that is not there and for a callable that a fresh process cannot get at.
    """
    if callable(target):
        return _callable(target, tuple(arguments), python)
    try:
        path = str(Path(target))
    except TypeError:
        what = f"{target!r} is of type {type(target).__name__}"
        raise UsageError(f"{what}: fit takes a path or a function", hint='hotbed.fit("train.py")') from None
    return script(path, arguments, python)


def script(target: str, arguments: Sequence[str] = (), python: str | None = None) -> Program:
    """The Python file or archive `target` as a Program. Raises UsageError where there is none."""
    path = Path(target)
    if path.is_dir():
        inside = path / "__main__.py"
        hint = f"give a file in it, e.g. {inside}" if inside.is_file() else "give a Python file in it"
        raise UsageError(f"{target} is a folder", hint=hint)
    if not path.exists():
        raise UsageError(f"there is no file {target}", hint="for a module: -m NAME")
    return Program("script", str(path), tuple(arguments), python)


def _callable(function: Callable[[], object], arguments: tuple[str, ...], python: str | None) -> Program:
    name = getattr(function, "__qualname__", None)
    module = getattr(function, "__module__", None)
    if name is None or module is None:
        raise UsageError(f"{function!r} has no name that a fresh process could import", hint=_HINT)
    _refuse(function, name)
    if module == "__main__":
        return _from_main(function, name, arguments, python)
    folder = _import_folder(module)
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    return Program("callable", f"{module}:{name}", arguments, python, environment=(("PYTHONPATH", path),))


def _refuse(function: Callable[[], object], name: str) -> None:
    """Says why a fresh process could not call `function`, where it could not."""
    if "<lambda>" in name:
        raise UsageError("a lambda has no name that a fresh process could import", hint=_HINT)
    if "<locals>" in name:
        raise UsageError(f"{name} is defined inside a function: a fresh process cannot import it", hint=_HINT)
    if not inspect.isfunction(function):
        kind = type(function).__name__
        raise UsageError(
            f"{name} is a {kind}, not a plain function: a fresh process has no such object", hint=_HINT
        )
    required = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if required:
        raise UsageError(
            f"{name} needs arguments ({', '.join(required)}), and would be called without any",
            hint="give them defaults, or wrap it in a function without arguments",
        )


def _from_main(
    function: Callable[[], object], name: str, arguments: tuple[str, ...], python: str | None
) -> Program:
    """A function of a notebook, the interactive interpreter or the script itself, by its source text."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise UsageError(f"the source of {name} cannot be found", hint=_HINT) from None
    missing = sorted(_outside_names(function))
    if missing:
        raise UsageError(
            f"{name} goes to a fresh process by its source alone, and uses names defined outside of it: "
            + ", ".join(missing),
            hint="import or define them inside the function",
        )
    return Program("callable", f"source:{name}", arguments, python, source=source)


def _outside_names(function: Callable[[], object]) -> set[str]:
    """Globals that the body of `function` refers to, apart from built-in ones."""
    found = inspect.getclosurevars(function)
    return {*found.globals, *found.nonlocals, *found.unbound} - {function.__name__} - _attributes(function)


def _attributes(function: Callable[[], object]) -> set[str]:
    """Names that the code uses as attributes: getclosurevars takes them for unbound globals."""
    import dis

    code = function.__code__
    loads = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    return set(code.co_names) - loads


def _import_folder(module: str) -> str:
    """The folder from which `module` was imported here, so that a fresh process finds it."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        raise UsageError(f"the module {module} has no file: a fresh process cannot import it", hint=_HINT)
    path = Path(file).resolve()
    depth = module.count(".") + (path.name == "__init__.py")
    return str(path.parents[depth])
