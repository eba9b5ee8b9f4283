"""What may be handed to hotbed.fit: files, and functions that a fresh process can get at."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from hotbed.errors import UsageError
from hotbed.predicting.targets import program_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT = 3


def train() -> int:
    return LIMIT


def train_with(size: int) -> int:
    return size


class Trainer:
    def fit(self) -> None: ...


def test_a_function_goes_by_its_module_and_name() -> None:
    program = program_of(train)
    assert (program.kind, program.target) == ("callable", f"{__name__}:train")
    folder = dict(program.environment)["PYTHONPATH"].split(":")[0]
    assert sys.modules[__name__].__file__ == f"{folder}/{__name__.replace('.', '/')}.py"


def local() -> Callable[[], None]:
    def inner() -> None: ...

    return inner


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (lambda: None, "lambda"),
        (local(), "inside a function"),
        (Trainer().fit, "method"),
        (partial(train), "no name"),
        (train_with, "needs arguments"),
    ],
)
def test_what_no_fresh_process_can_import_is_refused(target: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        program_of(target)


def test_what_is_neither_path_nor_function_is_named() -> None:
    with pytest.raises(UsageError, match="3 is of type int"):
        program_of(3)  # type: ignore[arg-type]


def in_notebook(monkeypatch: pytest.MonkeyPatch, function: Callable[[], object]) -> Callable[[], object]:
    monkeypatch.setattr(function, "__module__", "__main__")
    return function


def self_contained() -> int:
    import math

    return math.floor(len([1.5]))


def test_a_notebook_function_goes_by_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(in_notebook(monkeypatch, self_contained))
    assert program.target == "source:self_contained"
    assert program.source is not None
    assert program.source.startswith("def self_contained")


def test_a_notebook_function_that_uses_other_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="LIMIT"):
        program_of(in_notebook(monkeypatch, train))


def test_files_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*train\.py"):
        program_of(tmp_path / "train.py")
    with pytest.raises(UsageError, match="a folder"):
        program_of(tmp_path)
