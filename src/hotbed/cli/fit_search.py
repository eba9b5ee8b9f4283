"""`hotbed fit --max` and `--vary`: many runs of one program, with other arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hotbed.cli.printer import note, print_json, show
from hotbed.cli.progress import phases
from hotbed.errors import UsageError
from hotbed.predicting import Predictor
from hotbed.predicting.search import (
    Largest,
    Probe,
    Search,
    Span,
    combinations,
    filled,
    parse_choices,
    probe_of,
    refuse_unfilled,
    refuse_unused,
    side_by_side,
)
from hotbed.reporting.search_text import largest_text, probes_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotbed.cli.fit_request import Request
    from hotbed.gpu import Gpu
    from hotbed.predicting import Program, RunOptions


def answer(request: Request, options: RunOptions, program: Program, gpu: Gpu, settings: str | None) -> int:
    """Fills in the variables, prints what was found, and returns the exit status."""
    span = Span.parse(request.largest[0]) if request.largest else None
    choices = [parse_choices(text) for text in request.vary]
    names = [name for name, _ in choices] + ([span.name] if span else [])
    if len(set(names)) < len(names):
        raise UsageError(f"a variable is given twice: {', '.join(names)}")
    refuse_unused(program.arguments, names)
    refuse_unfilled(program.arguments, names)
    chosen = combinations(choices)
    python = request.pythons[0] if request.pythons else None
    known: list[Probe] = []
    with phases() as tell, Predictor(gpu, options, python=python, cards=False) as predictor:

        def run(values: Mapping[str, str]) -> Probe:
            tell("running " + ", ".join(f"{name}={value}" for name, value in values.items()))
            one = replace(program, arguments=filled(program.arguments, values))
            found = predictor.predict(one, settings, what_it_would_need=span is None)
            probe = probe_of(values, found, complete=span is None)
            if not options.running.ended:
                known.append(probe)
            return probe

        end = options.running.end
        try:
            if span is None:
                every = side_by_side(run, [dict(choice) for choice in chosen], end)
                return _print_probes(request, gpu, every)
            searches = [Search(span, choice, run, gpu.total_bytes, end) for choice in chosen]
            return _print_largest(request, gpu, [search.largest() for search in searches])
        except KeyboardInterrupt:
            return _print_known(request, gpu, known)


def _print_probes(request: Request, gpu: Gpu, probes: list[Probe]) -> int:
    _show_first_failure(probes)
    if request.as_json:
        for probe in probes:
            print_json(probe.to_json())
    else:
        show(probes_text(gpu.name, gpu.total_bytes, probes))
    verdicts = {probe.verdict for probe in probes}
    return 3 if verdicts == {"failed"} else int(verdicts != {"fits"})


def _print_known(request: Request, gpu: Gpu, probes: list[Probe]) -> int:
    """What was found before Ctrl-C."""
    note(f"interrupted after {len(probes)} runs")
    if probes:
        _print_probes(request, gpu, sorted(probes, key=_by_values))
    return 130


def _by_values(probe: Probe) -> list[tuple[int, str]]:
    """Orders 2 before 10."""
    return [(len(value), value) for _, value in probe.values]


def _print_largest(request: Request, gpu: Gpu, found: list[Largest]) -> int:
    _show_first_failure([probe for one in found for probe in one.probes])
    if request.as_json:
        for one in found:
            print_json(one.to_json())
    else:
        show(largest_text(gpu.name, gpu.total_bytes, found))
    if all(probe.verdict == "failed" for one in found for probe in one.probes):
        return 3
    return int(any(one.value is None for one in found))


def _show_first_failure(probes: list[Probe]) -> None:
    """The error of the program, once: other values usually meet the same."""
    failed = [probe for probe in probes if probe.error]
    if failed and failed[0].error:
        values = ", ".join(f"{name}={value}" for name, value in failed[0].values)
        note(
            f"the program failed with {values}"
            + (f", and {len(failed) - 1} times more" if failed[1:] else "")
        )
        note(failed[0].error.traceback)
