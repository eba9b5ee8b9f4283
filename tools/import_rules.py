"""Checks that every part of hotbed imports only the parts that pyproject.toml allows it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import tomlkit

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "hotbed"


def part_of(module: str) -> str | None:
    """The part a dotted module belongs to: "hotbed.trace.hbt" → "trace"; None for foreign modules."""
    head, _, rest = module.partition(".")
    if head != "hotbed":
        return None
    return rest.split(".")[0] or "__init__"


def imported_modules(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, module) of every import in `tree`, those inside functions and TYPE_CHECKING blocks included."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            deeper = [f"hotbed.{name}" for name in names] if node.module == "hotbed" else [node.module]
            found += [(node.lineno, module) for module in deeper]
    return found


def violations(rules: dict[str, list[str]]) -> list[str]:
    """One line for each import that no rule allows."""
    lines = []
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        allowed = rules.get(part)
        if allowed is None:
            lines.append(f"{path}: part {part!r} has no line in [tool.hotbed.imports]")
            continue
        for line, module in imported_modules(ast.parse(path.read_text())):
            target = part_of(module)
            if target in (None, part, "__version__") or "*" in allowed or target in allowed:
                continue
            lines.append(f"{path}:{line}: {part} may not import hotbed.{target}; move what is shared down")
    return lines


def main() -> int:
    settings = tomlkit.parse((ROOT / "pyproject.toml").read_text()).unwrap()
    found = violations(settings["tool"]["hotbed"]["imports"])
    print("\n".join(found) or "import rules: all kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
