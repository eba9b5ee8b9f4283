"""Checks the sizes that keep the code readable: modules, functions, verb files and tests."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
MODULE_MEDIAN, MODULE_MAX = 150, 500
FUNCTION_MEDIAN, FUNCTION_P90, FUNCTION_MAX = 12, 35, 60
VERB_MAX = 120
TEST_MAX = 40
NOT_VERBS = ("__init__.py", "main.py", "printer.py")


class Piece(NamedTuple):
    """A module or function: where it is, and how many lines it has, docstring included."""

    place: str
    lines: int


def modules(folder: Path) -> list[Piece]:
    """Every module below `folder`."""
    return [
        Piece(str(path.relative_to(ROOT)), path.read_text().count("\n"))
        for path in sorted(folder.rglob("*.py"))
    ]


def functions(folder: Path) -> list[Piece]:
    """Every function and method below `folder`, nested ones too."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append(Piece(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", lines))
    return found


def over(pieces: list[Piece], limit: int, what: str) -> list[str]:
    """A line for each piece above `limit`."""
    return [
        f"{piece.place}: {piece.lines} lines, a {what} has at most {limit}"
        for piece in pieces
        if piece.lines > limit
    ]


def middle(pieces: list[Piece], limit: int, what: str) -> list[str]:
    """A line if the median of the pieces is above `limit`."""
    value = median(piece.lines for piece in pieces)
    return [f"the median {what} has {value:.0f} lines, at most {limit}"] if value > limit else []


def p90(pieces: list[Piece]) -> int:
    """The size that nine pieces in ten do not exceed."""
    ordered = sorted(piece.lines for piece in pieces)
    return ordered[(len(ordered) * 9 - 1) // 10]


def violations() -> list[str]:
    """One line for each budget that does not hold."""
    package = ROOT / "src" / "hotbed"
    code, parts = functions(package), modules(package)
    verbs = [piece for piece in modules(package / "cli") if Path(piece.place).name not in NOT_VERBS]
    tests = [
        piece for piece in functions(ROOT / "tests") if piece.place.rpartition(" ")[2].startswith("test_")
    ]
    lines = [
        *over(parts, MODULE_MAX, "module"),
        *over(verbs, VERB_MAX, "verb's file"),
        *over(code, FUNCTION_MAX, "function"),
        *over(tests, TEST_MAX, "test"),
        *middle(parts, MODULE_MEDIAN, "module"),
        *middle(code, FUNCTION_MEDIAN, "function"),
    ]
    if p90(code) > FUNCTION_P90:
        lines.append(f"one function in ten has {p90(code)} lines or more, at most {FUNCTION_P90}")
    return lines


def main() -> int:
    found = violations()
    package = ROOT / "src" / "hotbed"
    code, parts = functions(package), modules(package)
    sizes = (
        f"modules: median {median(p.lines for p in parts):.0f}, largest {max(p.lines for p in parts)} lines; "
    )
    sizes += f"functions: median {median(p.lines for p in code):.0f}, 90 % within {p90(code)}, "
    sizes += f"largest {max(p.lines for p in code)}"
    print("\n".join([*found, sizes]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
