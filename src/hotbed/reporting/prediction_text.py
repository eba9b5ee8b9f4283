"""Text of a prediction: does it fit, who holds the memory, which cards would do, and how far to trust it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hotbed.reporting.bars import share_bar
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from hotbed.predicting.prediction import DevicePeaks, GpuFit, Prediction, StepPeak
    from hotbed.predicting.script_run import Read

_BAR_WIDTH = 32
# Reads that decide no size by themselves, unlike nonzero and the like.
_OF_ONE_VALUE = ("item", "copy to host")
_READS_SHOWN = 6
_CARDS_SHOWN = 8
_CATEGORIES_SHOWN = 3
_STOPPED = ("time", "host_memory", "interrupted")
"""endings that come before the program has shown what was asked for"""


def prediction_text(found: Prediction) -> RenderableType:
    """One screen: verdict, peaks, categories, steps, cards, and what the answer rests on."""
    parts: list[RenderableType] = [
        Text(_verdict(found), style="bold" if found.fits_asked and not found.program_failed else "bold red"),
    ]
    if found.undershoots:
        parts.append(Text(f"and needs more than this: {found.undershoots}", style="bold red"))
    if not _nothing_known(found):
        parts.append(_figures(found))
    told = not found.program_failed and found.unknown is None and found.uses_gpu
    tables = (_categories(found), _steps(found), _cards(found)) if told else ()
    for part in tables:
        if part is not None:
            parts += [Text(""), part]
    remarks = [*_remarks(found)]
    if remarks:
        parts += [Text(""), *(Text(remark) for remark in remarks)]
    return Group(*parts, Text(""), Text(_next(found), no_wrap=True, overflow="ignore"))


def predictions_text(every: Sequence[Prediction]) -> Table:
    """Several predictions of one program side by side, the first as the base."""
    table = Table(
        title=f"{every[0].program} on {every[0].gpu}", title_justify="left", title_style="", box=None
    )
    for heading in (
        "torch",
        "settings",
        "peak live",
        "peak reserved",
        "against first",
        "device used",
        "verdict",
    ):
        table.add_column(heading, justify="left" if heading in ("torch", "settings", "verdict") else "right")
    base = every[0].peak_reserved_bytes or 1
    for found in every:
        verdict = {True: "fits", False: "DOES NOT FIT", None: "not known"}[found.fits_asked]
        if found.program_failed:
            verdict = "failed"
        table.add_row(
            found.torch_version,
            found.settings.replace(",", ", ") or "(default)",
            format_size(found.peak_allocated_bytes),
            format_size(found.peak_reserved_bytes),
            f"{100 * (found.peak_reserved_bytes / base - 1):+.1f} %",
            format_size(found.device_used_bytes),
            verdict,
        )
    return table


def _nothing_known(found: Prediction) -> bool:
    return found.unknown is not None and not found.uses_gpu


def _failure(found: Prediction) -> str:
    status = f"exit status {found.script_exit_code}" if found.script_exit_code else "by a signal"
    if found.error is None or found.error.type == "SystemExit":
        return status
    return ": ".join([found.error.type, *found.error.message.splitlines()[:1]])


def _verdict(found: Prediction) -> str:
    card = found.fits[0]
    total = format_size(card.total_bytes)
    if _nothing_known(found):
        failure = f" ({_failure(found)})" if found.error else ""
        return f"nothing is known of it: {found.unknown}{failure}"
    if found.program_failed:
        return f"the program failed ({_failure(found)}); up to then"
    if found.unknown is not None:
        return f"not known whether it fits {card.gpu}: {found.unknown}; up to then"
    if not found.uses_gpu:
        return "uses no GPU"
    if not found.fits_asked:
        return f"does not fit {card.gpu}: needs {format_size(card.smallest_bytes)}, has {total}"
    if found.device_used_bytes > card.total_bytes:
        return f"fits {card.gpu}, but only just: {total}, the cache flushed {card.alloc_retries} times"
    free = format_size(card.total_bytes - found.device_used_bytes)
    fits = "so far it fits" if found.ending in _STOPPED else "fits"
    return (
        f"{fits} {card.gpu}: {format_size(found.device_used_bytes)} of {total} used at the peak, {free} free"
    )


def _figures(found: Prediction) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold")
    spread = found.peak_reserved_range_bytes
    between = f"{format_size(spread.low)} to {format_size(spread.high)}, by {_not_known(found)}"
    held = ", ".join(f"{what} {size / MIB:.0f}" for what, size in found.overhead.parts)
    table.add_row("peak live", format_size(found.peak_allocated_bytes), "")
    table.add_row(
        "peak reserved",
        format_size(found.peak_reserved_bytes),
        between if spread.low != spread.high else found.settings or "default settings",
    )
    table.add_row(
        "device used", format_size(found.device_used_bytes), f"with {held} MiB" if held else "reserved"
    )
    table.add_row("host memory", format_size(found.host_peak_bytes), "")
    for other in found.other_devices:
        table.add_row(f"cuda:{other.device}", format_size(other.peak_reserved_bytes), _elsewhere(other))
    return table


def _elsewhere(other: DevicePeaks) -> str:
    """The figures before it are those of the fullest GPU; this is another one."""
    largest = sorted(other.by_category, key=lambda one: -one.at_peak_bytes)[:_CATEGORIES_SHOWN]
    held = [f"{one.category} {format_size(one.at_peak_bytes)}" for one in largest if one.at_peak_bytes]
    return ", ".join([f"reserved; live {format_size(other.peak_allocated_bytes)}", *held])


def _categories(found: Prediction) -> Table | None:
    if not found.by_category:
        return None
    table = Table(
        title="At the peak of live memory", title_justify="left", title_style="", box=None, pad_edge=False
    )
    for heading in ("held by", "at the peak", "", "at most"):
        table.add_column(heading, justify="left" if heading in ("held by", "") else "right", no_wrap=True)
    whole = found.peak_allocated_bytes
    for category in found.by_category:
        table.add_row(
            category.category,
            format_size(category.at_peak_bytes),
            share_bar(category.at_peak_bytes, whole, _BAR_WIDTH),
            format_size(category.peak_bytes),
        )
    return table


def _steps(found: Prediction) -> Table | None:
    rows = [*_chosen_steps(found.steps)]
    if not rows:
        return None
    table = Table(box=None, pad_edge=False)
    for heading in ("stretch", "peak live", "peak reserved", "live at its end"):
        table.add_column(heading, justify="left" if heading == "stretch" else "right", no_wrap=True)
    for name, step in rows:
        table.add_row(
            name,
            format_size(step.peak_allocated_bytes),
            format_size(step.peak_reserved_bytes),
            format_size(step.live_at_end_bytes),
        )
    return table


def _chosen_steps(steps: Sequence[StepPeak]) -> Iterator[tuple[str, StepPeak]]:
    """Set-up, the first step, the heaviest of the others, the heaviest evaluation."""
    by_phase = {
        phase: [step for step in steps if step.phase == phase] for phase in ("setup", "train", "eval")
    }
    if by_phase["setup"]:
        yield "set-up", _heaviest(by_phase["setup"])
    first, later = by_phase["train"][:1], by_phase["train"][1:]
    if first:
        yield "first step", first[0]
    if later:
        yield f"later steps ({len(later)})", _heaviest(later)
    if by_phase["eval"]:
        yield "evaluation", _heaviest(by_phase["eval"])


def _heaviest(steps: Sequence[StepPeak]) -> StepPeak:
    return max(steps, key=lambda step: step.peak_allocated_bytes)


def _cards(found: Prediction) -> Table | None:
    if len(found.fits) < 2:
        return None
    recommended = found.recommended_settings
    table = Table(box=None, pad_edge=False)
    table.add_column("GPU", no_wrap=True)
    table.add_column("memory", justify="right", no_wrap=True)
    table.add_column("needs at least", justify="right", no_wrap=True)
    table.add_column("default" if not found.settings else "these settings", no_wrap=True)
    if recommended:
        table.add_column("recommended", no_wrap=True)
    for card in _shown(found.fits):
        row = [
            card.gpu.removeprefix("NVIDIA ").removeprefix("GeForce ").removeprefix("Tesla "),
            format_size(card.total_bytes),
            format_size(card.smallest_bytes) + (" ~" if card.estimated else ""),
            _room(card.fits, card.headroom_bytes, card.alloc_retries),
        ]
        if recommended:
            row.append(_room(bool(card.fits_with_recommended), card.recommended_headroom_bytes or 0, 0))
        table.add_row(*row)
    return table


def _shown(fits: Sequence[GpuFit]) -> list[GpuFit]:
    """The asked card, and of the others those around the point where it begins to fit."""
    asked, others = fits[0], list(fits[1:])
    begins = next((place for place, card in enumerate(others) if card.fits), len(others))
    first = max(0, min(begins - _CARDS_SHOWN // 2, len(others) - _CARDS_SHOWN + 1))
    return [asked, *others[first : first + _CARDS_SHOWN - 1]]


def _room(fits: bool, headroom_bytes: int, retries: int) -> str:
    if not fits:
        return f"no, {format_size(-headroom_bytes)} short"
    return f"{format_size(headroom_bytes)} spare" + (f", {retries} flushes" if retries else "")


def _remarks(found: Prediction) -> Iterator[str]:
    known = not _nothing_known(found)
    for warning in found.warnings if known else ():
        if warning != found.undershoots:
            yield f"note: {warning}"
    if found.guesses:
        yield f"rests on guesses: the program reads {len(found.guesses)} values that no phantom can know, and was told"
        yield from (f"  {_guess(read)}" for read in found.guesses[:_READS_SHOWN])
        if len(found.guesses) > _READS_SHOWN:
            yield f"  and {len(found.guesses) - _READS_SHOWN} more (--json lists all)"
        yield from _seeds(found)
    for sentence in found.not_modelled:
        yield f"not modelled: {sentence}"
    if found.recommended_how and len(found.fits) > 1:
        yield f"recommended: {found.recommended_settings or 'the settings in force'} ({found.recommended_how})"
    if known and found.uses_gpu and any(card.estimated for card in found.fits):
        yield f"~ estimate: {_why_estimated(found)}"


def _seeds(found: Prediction) -> Iterator[str]:
    """How far the guesses matter."""
    peaks = [one.peak_reserved_bytes for one in found.seeds]
    if len(set(peaks)) > 1:
        yield (
            f"  sizes follow from some of them: {len(peaks)} seeds reserved {format_size(min(peaks))} to "
            f"{format_size(max(peaks))}; the figures are the largest's, and a cap's margin is wider by the difference"
        )
    elif peaks:
        yield f"  {len(peaks)} seeds reserved the same"
    elif any(read.operation not in _OF_ONE_VALUE for read in found.guesses):
        yield "  sizes may follow from some of them: the margin of a cap does not cover that; --seeds 3 shows how far they matter"


def _not_known(found: Prediction) -> str:
    """What the range of reserved memory comes from."""
    spread, peaks = found.peak_reserved_range_bytes, [one.peak_reserved_bytes for one in found.seeds]
    apart = max(peaks, default=0) - min(peaks, default=0)
    of_card = spread.high - spread.low > 2 * apart
    return " and ".join(["what is not known of the card"] * of_card + ["guessed sizes"] * bool(apart))


def _why_estimated(found: Prediction) -> str:
    """The reason for the asked card, and what is true of the others beside it."""
    own = found.fits[0].estimated
    beyond = f"the program ran as on {found.gpu}, and other architectures choose other workspaces"
    others = any(card.estimated not in (None, own) for card in found.fits)
    return "; ".join(filter(None, (own, beyond if others else None)))


def _guess(read: Read) -> str:
    times = f", {read.count} times" if read.count > 1 else ""
    return f"{read.answer} for {read.operation} at {read.where}{times}"


def _next(found: Prediction) -> str:
    steps = f"{found.optimizer_steps} optimizer steps"
    ended = found.ending == "end" and not found.optimizer_steps and not found.program_failed
    what = "to its end" if ended and found.unknown is None else steps
    torch = f" with torch {found.torch_version}" if found.torch_version else ""
    ran = f"{what} in {found.wall_seconds:.1f} s{torch}"
    where = f"; trace: {found.trace}" if found.trace else ""
    return f"{ran}{where}\n{_advice(found)}".rstrip()


def _advice(found: Prediction) -> str:
    """What to do next, as a command where there is one."""
    asked = found.fits[0]
    if found.program_failed or found.fits_asked is None:
        return ""
    if not found.fits_asked and asked.fits_with_recommended:
        return f"next: it fits with --settings {found.recommended_settings}"
    if not found.fits_asked:
        return "next: --max b=1..1024, with {b} in the program's arguments, finds what fits; --tune searches settings"
    return f"next: hotbed tune {found.trace}" if found.trace else ""
