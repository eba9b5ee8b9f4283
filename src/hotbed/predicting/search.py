"""The largest value of a variable with which a program fits, found by running it with several."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from hotbed.errors import UsageError

if TYPE_CHECKING:
    from hotbed.predicting.prediction import Prediction
    from hotbed.predicting.script_run import ScriptError

SCHEMA = 1
SIDE_BY_SIDE = 2
"""programs that run at the same time"""
Values = Mapping[str, str]
Verdict = Literal["fits", "too large", "failed"]
_RANGE = re.compile(r"([A-Za-z_]\w*)=(\d+)\.\.(\d+)(?::(\d+))?")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_LIST = re.compile(r"([A-Za-z_]\w*)=(.+)")
_FAILURES = 3
"""runs that fail by themselves before the search gives up, as long as none fits"""
_EXPECTATIONS = 4
"""how often to look where memory should end, before it is taken to grow unevenly"""
_SECOND_PLACE = 3


@dataclass(frozen=True)
class Span:
    """Whole numbers to try for a variable: first, first + step, ... up to last."""

    name: str
    values: range

    @classmethod
    def parse(cls, text: str) -> Span:
        """Reads "b=1..1024" and "b=8..1024:8" (in steps of 8). Raises UsageError."""
        match = _RANGE.fullmatch(text)
        values = range(int(match[2]), int(match[3]) + 1, int(match[4] or 1) or 1) if match else range(0)
        if match is None or not values:
            raise UsageError(
                f"{text!r} is no range of values", hint="write it like b=1..1024, or b=8..1024:8"
            )
        return cls(match[1], values)


def parse_choices(text: str) -> tuple[str, tuple[str, ...]]:
    """Reads "ckpt=0,1". Raises UsageError."""
    match = _LIST.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} names no values", hint="write it like ckpt=0,1")
    return match[1], tuple(dict.fromkeys(match[2].split(",")))


def filled(arguments: Sequence[str], values: Values) -> tuple[str, ...]:
    """`arguments` with {name} replaced for each of `values`; other braces stay."""
    for name, value in values.items():
        arguments = [argument.replace(f"{{{name}}}", value) for argument in arguments]
    return tuple(arguments)


def refuse_unused(arguments: Sequence[str], names: Iterable[str]) -> None:
    """Raises UsageError for a variable that no argument mentions: every run would be the same."""
    text = " ".join(arguments)
    for name in names:
        if f"{{{name}}}" not in text:
            raise UsageError(
                f"no argument of the program holds {{{name}}}", hint=f"train.py --batch-size {{{name}}}"
            )


def refuse_unfilled(arguments: Sequence[str], names: Collection[str]) -> None:
    """Raises UsageError for a {name} that stands for no variable: the program would get it as it is."""
    unfilled = [
        name for argument in arguments for name in _PLACEHOLDER.findall(argument) if name not in names
    ]
    if unfilled:
        raise UsageError(
            f"nothing says what to put for {{{unfilled[0]}}}", hint=f"--vary {unfilled[0]}=1,2, or --max"
        )


@dataclass(frozen=True)
class Probe:
    """One run of the program with some values for its variables."""

    values: tuple[tuple[str, str], ...]
    verdict: Verdict
    smallest_bytes: int | None
    """device memory that it needs at least; None where it failed"""
    peak_reserved_bytes: int
    peak_allocated_bytes: int
    device_used_bytes: int
    error: ScriptError | None
    wall_seconds: float

    def to_json(self) -> dict[str, Any]:
        """Plain containers, with `schema`; the values of the variables as an object."""
        return {"schema": SCHEMA, **asdict(self), "values": dict(self.values)}


@dataclass(frozen=True)
class Largest:
    """The largest value that fits, for one choice of the other variables.

    `value` is None where none that was tried fits; `next_value` the next larger value, which does not fit, None at the
    end of the range. `notes` say where the answer is not certain, e.g. since a larger value fits again.
    """

    variable: str
    choice: tuple[tuple[str, str], ...]
    value: int | None
    next_value: int | None
    notes: tuple[str, ...]
    probes: tuple[Probe, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain containers, with `schema`; values of variables as objects."""
        plain = {"schema": SCHEMA, **asdict(self), "choice": dict(self.choice)}
        plain["probes"] = [probe.to_json() for probe in self.probes]
        return plain


def combinations(choices: Sequence[tuple[str, tuple[str, ...]]]) -> list[tuple[tuple[str, str], ...]]:
    """Every choice of one value for each variable."""
    named = [[(name, value) for value in values] for name, values in choices]
    return [tuple(chosen) for chosen in itertools.product(*named)]


def probe_of(values: Values, found: Prediction, *, complete: bool) -> Probe:
    """What `found`, a Prediction for the program with `values`, says about them.

    `complete`: a program that ran out of memory was run again with enough.
    """
    failed, asked = found.program_failed or found.fits_asked is None, found.fits[0]
    known = complete or found.ending != "out_of_memory"
    verdict: Verdict = "failed" if failed else "fits" if found.fits_asked else "too large"
    return Probe(
        values=tuple(values.items()),
        verdict=verdict,
        smallest_bytes=asked.smallest_bytes if not failed and known else None,
        peak_reserved_bytes=found.peak_reserved_bytes,
        peak_allocated_bytes=found.peak_allocated_bytes,
        device_used_bytes=found.device_used_bytes,
        error=found.error if failed else None,
        wall_seconds=found.wall_seconds,
    )


def side_by_side(
    run: Callable[[Values], Probe], many: Sequence[Values], end: Callable[[], None] = lambda: None
) -> list[Probe]:
    """Runs the program with each of `many`, SIDE_BY_SIDE at a time. On Ctrl-C `end` ends those that are running."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        try:
            return list(pool.map(run, many))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            end()
            raise


class Search:
    """Finds the largest value of `span` that fits, with the other variables at `choice`.

    `capacity_bytes` is the memory of the card: where two runs say how memory grows, it tells where to look. On Ctrl-C `end_runs` ends the runs under way.
    """

    def __init__(
        self,
        span: Span,
        choice: tuple[tuple[str, str], ...],
        run: Callable[[Values], Probe],
        capacity_bytes: int,
        end_runs: Callable[[], None] = lambda: None,
    ) -> None:
        self.span, self.choice, self.run, self.capacity_bytes = span, choice, run, capacity_bytes
        self.end_runs = end_runs
        self.end = len(span.values)
        self.known: dict[int, Probe] = {}
        """place in span.values → what was found there"""
        self.expectations = _EXPECTATIONS

    def largest(self) -> Largest:
        """Few runs where memory grows evenly with the value, a bisection where it does not.

        It is not taken for granted that what fits is below what does not: two values above the answer are tried.
        """
        self._probe((0, min(_SECOND_PLACE, self.end - 1)))
        while places := self._next():
            self._probe(places)
        below, _ = self._bracket()
        notes: list[str] = []
        if below >= 0:
            below = self._checked(below, notes)
        values = self.span.values
        return Largest(
            variable=self.span.name,
            choice=self.choice,
            value=values[below] if below >= 0 else None,
            next_value=values[below + 1] if below + 1 < self.end else None,
            notes=tuple(notes),
            probes=tuple(self.known[place] for place in sorted(self.known)),
        )

    def _probe(self, places: Iterable[int]) -> None:
        new = [place for place in dict.fromkeys(places) if place not in self.known and place < self.end]
        values = [dict((*self.choice, (self.span.name, str(self.span.values[place])))) for place in new]
        self.known |= dict(zip(new, side_by_side(self.run, values, self.end_runs), strict=True))

    def _bracket(self) -> tuple[int, int]:
        """The last place that fits before the first that does not (-1: none), and that one (`end`: none yet).

        A failure of the program itself below anything that fits, with a batch of 1 perhaps, is passed over.
        """
        below = -1
        for place in sorted(self.known):
            verdict = self.known[place].verdict
            if verdict == "fits":
                below = place
            elif verdict == "too large" or below >= 0:
                return below, place
        return below, self.end

    def _next(self) -> list[int]:
        """Places to try next; none when the answer is known, or nothing but failures was seen."""
        below, above = self._bracket()
        failures = sum(probe.verdict == "failed" for probe in self.known.values())
        if below < 0 and failures >= _FAILURES:
            return []
        unknown = [place for place in range(below + 1, above) if place not in self.known]
        wanted = self._expected(below, above) or _doubled(above, self.end, self.known)
        return [place for place in wanted if place in unknown] or _thirds(unknown)

    def _expected(self, below: int, above: int) -> list[int]:
        """The last place that should fit if memory grows evenly, and the next one; empty where that is not known.

        Growth is that between two runs that fit. Small values tell it by live memory: what is reserved grows in steps.
        """
        fitting = [
            place for place in sorted(self.known) if place <= below and self.known[place].verdict == "fits"
        ]
        if len(fitting) < 2 or not self.expectations:
            return []
        second = fitting[-1]
        first = max((place for place in fitting if place <= second // 2), default=fitting[0])
        low, high = self.known[first], self.known[second]
        if low.smallest_bytes is None or high.smallest_bytes is None:
            return []
        by_live = len(fitting) == 2
        growth = (
            high.peak_allocated_bytes - low.peak_allocated_bytes
            if by_live
            else high.smallest_bytes - low.smallest_bytes
        )
        if growth <= 0:
            return []
        self.expectations -= 1
        place = second + int((self.capacity_bytes - high.smallest_bytes) * (second - first) / growth)
        if place >= above - 1 and above < self.end:
            # What does not fit lies lower than live memory says: from there downwards.
            return [above - max(1, (above - below) // part) for part in (4, 16)]
        place = min(max(place, below + 1), above - 1)
        return [place, min(place + 1, above - 1)]

    def _checked(self, below: int, notes: list[str]) -> int:
        """Tries the next values above: where one of them fits, memory does not simply grow with the value.

        Then ever larger distances are tried, until nothing fits any more.
        """
        distance, gap = 1, below + 1
        while True:
            self._probe((below + distance, below + 2 * distance))
            larger = [
                place for place, probe in self.known.items() if place > below and probe.verdict == "fits"
            ]
            if not larger:
                break
            below, distance = max(larger), 2 * distance
        if below > gap:
            name, values = self.span.name, self.span.values
            notes.append(
                f"{name}={values[gap]} does not fit and {name}={values[below]} does: memory does not simply grow with "
                f"{name}, so a larger one than those tried may fit"
            )
        return below


def _doubled(above: int, end: int, known: Iterable[int]) -> list[int]:
    """While nothing is known not to fit: twice and four times as far."""
    if above < end:
        return []
    last = max(known)
    return [min(2 * last + 1, end - 1), min(4 * last + 3, end - 1)]


def _thirds(places: Sequence[int]) -> list[int]:
    """Those that cut `places` into three equal parts."""
    count = len(places)
    return [places[index] for index in sorted({count // 3, 2 * count // 3})] if count else []
