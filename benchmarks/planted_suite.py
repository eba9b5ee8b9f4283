"""Claim: findings name the right class and the right line. Records each planted program and judges what is found.

    python benchmarks/planted_suite.py [NAME]... [--fresh] [--show] [--keep FOLDER] [--column first|final] [--floor N]

Each program runs under `hotbed record --phantom` on a card of the memory that it asks for; what `hotbed findings` says of the file
is compared with what was planted (tests/phantom/planted.py). `--column` writes the results into
benchmarks/results/planted_suite.json. Without `--fresh` programs are forked from a process that imported torch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed import phantom

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.forking import TORCH, serving  # noqa: E402
from tests.phantom.planted import Planted, Verdict, independent_programs, look, programs_of_the_rules  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "planted_suite.json"


def score(programs: list[Planted], verdicts: dict[str, Verdict]) -> dict[str, Any]:
    """Right and asked, for all programs and for each author's."""

    def one(chosen: list[Planted]) -> dict[str, Any]:
        guilty = [verdicts[program.name] for program in chosen if not program.innocent]
        innocent = [verdicts[program.name] for program in chosen if program.innocent]
        judged = [verdicts[program.name] for program in chosen]
        return {
            "programs": len(chosen),
            "class": _ratio(verdict.class_right for verdict in judged),
            "line": _ratio(verdict.line_right for verdict in judged),
            "line_or_further_lines": _ratio(verdict.line_among_others for verdict in judged),
            "class_and_line": _ratio(
                verdict.class_right and verdict.line_right is not False for verdict in judged
            ),
            "bytes": _ratio(verdict.bytes_right for verdict in judged),
            "innocent_accused": _ratio(bool(verdict.false_alarms) for verdict in innocent),
            "guilty_accused_of_more": _ratio(bool(verdict.false_alarms) for verdict in guilty),
        }

    return {
        "independent": one([program for program in programs if program.independent]),
        "of_the_rules": one([program for program in programs if not program.independent]),
        "all": one(programs),
    }


def _ratio(answers: Iterable[bool | None]) -> list[int]:
    given = [one for one in answers if one is not None]
    return [sum(given), len(given)]


def run(programs: list[Planted], folder: Path, socket: Path, fresh: bool) -> dict[str, Verdict]:
    with ExitStack() as stack:
        server = None
        if not fresh:
            env = phantom.environment(base={**os.environ, "PYTHONHASHSEED": "0"})
            server = stack.enter_context(serving(socket, sys.executable, TORCH, env))
        workers = stack.enter_context(ProcessPoolExecutor(2))
        pending = {program.name: workers.submit(look, program, folder, server) for program in programs}
        return {name: future.result() for name, future in pending.items()}


def write(
    column: str, programs: list[Planted], verdicts: dict[str, Verdict], figures: dict[str, Any]
) -> None:
    """Puts one column into the file of results, and leaves the other as it is."""
    document = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"programs": {}}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    document[column] = {"date": time.strftime("%Y-%m-%d"), "commit": commit.stdout.strip(), "score": figures}
    for program in programs:
        entry = document["programs"].setdefault(program.name, {})
        entry["expected"] = {
            "class": program.kind,
            "also": program.also,
            "innocent": program.innocent,
            "lines": program.lines,
            "bytes": program.size_bytes,
            "independent": program.independent,
        }
        entry[column] = asdict(verdicts[program.name])
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")


def table(programs: list[Planted], verdicts: dict[str, Verdict], everything: bool) -> None:
    for program in programs:
        verdict = verdicts[program.name]
        good = verdict.class_right and verdict.line_right is not False and verdict.bytes_right is not False
        if good and not everything:
            continue
        found = verdict.found or {}
        print(
            f"{program.name:28} {program.kind:18} class {_mark(verdict.class_right)} line {_mark(verdict.line_right)}"
            f" bytes {_mark(verdict.bytes_right)}  {found.get('code')} {found.get('where')}"
            f" {found.get('bytes')} {found.get('per_step_bytes')} alarms {', '.join(verdict.false_alarms) or '-'}"
        )
        if everything:
            print("".join(f"    {line}\n" for line in verdict.all_found), end="")


def _mark(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "NO "


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only these programs")
    parser.add_argument("--fresh", action="store_true", help="each program in a new interpreter")
    parser.add_argument("--show", action="store_true", help="all that was found")
    parser.add_argument("--keep", type=Path, help="folder of the recordings; those there are not made again")
    parser.add_argument("--floor", type=int, default=0, help="fail if fewer are right in class and line")
    parser.add_argument("--column", choices=("first", "final"), help="write this column of the results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hotbed-planted-") as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True)
        programs = [*independent_programs(), *programs_of_the_rules(folder)]
        if options.names:
            programs = [program for program in programs if program.name in options.names]
        verdicts = run(programs, folder, Path(name) / "socket", options.fresh)
    table(programs, verdicts, options.show)
    figures = score(programs, verdicts)
    for group, values in figures.items():
        print(
            group,
            " ".join(f"{key} {value[0]}/{value[1]}" for key, value in values.items() if key != "programs"),
        )
    if options.column:
        write(options.column, programs, verdicts, figures)
    right, accused = figures["all"]["class_and_line"][0], figures["all"]["innocent_accused"][0]
    return int(right < options.floor or accused > 0)


if __name__ == "__main__":
    sys.exit(main())
