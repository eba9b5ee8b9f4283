"""What the guard has seen so far, as a value and in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hotbed.recording.guard.calling import Caller
from hotbed.recording.guard.words import call_words, caller_words, duration
from hotbed.units import format_size

if TYPE_CHECKING:
    from hotbed.recording.guard.running import Running
    from hotbed.recording.guard.sites import Site
    from hotbed.trace.model import Frame

SCHEMA = 1


@dataclass(frozen=True)
class SiteReport:
    """One line that empties the cache or collects garbage; bytes over all devices and calls.

    `seconds` in the calls as measured; `again_seconds` what the cudaMalloc after them take on an H200, which are not
    timed. `share` is that of the time of the last calls. `judgement` is one of those in docs/verbs/guard.md.
    """

    kind: str
    where: Frame | None
    via: Frame | None
    calls: int
    skipped: int
    seconds: float
    again_seconds: float
    returned_bytes: int
    again_bytes: int
    device_mallocs: int
    freed_bytes: int
    share: float
    judgement: str


@dataclass(frozen=True)
class Report:
    """`steps`: how often the optimizer stepped; `step_seconds` from the first to the last of them, on average.
    `out_of_memory`: how often torch raised it, caught or not. `growing`: what grows, one sentence each."""

    policy: str
    steps: int
    step_seconds: float | None
    sites: tuple[SiteReport, ...]
    out_of_memory: int
    growing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain containers, schema 1: the fields above under their names."""
        return {"schema": SCHEMA, **asdict(self)}

    def __str__(self) -> str:
        return "\n".join([*self._head(), *(line for site in self.sites for line in _words(site))])

    def _head(self) -> list[str]:
        step = "" if self.step_seconds is None else f" of {duration(self.step_seconds)}"
        lines = [f"hotbed guard, policy {self.policy}: {self.steps} steps{step}"]
        if self.out_of_memory:
            lines.append(
                f"out of memory {self.out_of_memory} times, as torch counts the errors that it raises"
            )
        lines += self.growing
        return lines if self.sites else [*lines, "nothing emptied the cache or collected garbage"]


def report_of(running: Running) -> Report:
    """As of now."""
    steps = running.steps
    return Report(
        policy=running.options.policy,
        steps=0 if steps is None else steps.count,
        step_seconds=None if steps is None else steps.mean_s,
        sites=tuple(_site(site, running.judgement(site)) for site in list(running.sites.by_key.values())),
        out_of_memory=0 if running.postmortem is None else running.postmortem.count,
        growing=() if running.leaks is None else tuple(running.leaks.found),
    )


def _site(site: Site, judgement: str) -> SiteReport:
    return SiteReport(
        kind=site.kind,
        where=site.caller.where,
        via=site.caller.via,
        calls=site.calls,
        skipped=site.skipped,
        seconds=site.seconds,
        again_seconds=site.again_seconds,
        returned_bytes=site.returned_bytes,
        again_bytes=site.again_bytes,
        device_mallocs=site.device_mallocs,
        freed_bytes=site.freed_bytes,
        share=site.share,
        judgement=judgement,
    )


def _words(site: SiteReport) -> list[str]:
    skipped = f", {site.skipped} of them skipped" if site.skipped else ""
    head = f"{_line(site)} {call_words(site.kind)}: {site.calls} calls{skipped}; {_JUDGED[site.judgement]}"
    if site.kind == "gc.collect":
        return [head, f"  {duration(site.seconds)} in all, freed {format_size(site.freed_bytes)} on the GPU"]
    return [
        head,
        f"  {duration(site.seconds)} in all, returned {format_size(site.returned_bytes)}, of which {site.device_mallocs} "
        f"cudaMalloc took {format_size(site.again_bytes)} again (about {duration(site.again_seconds)})",
    ]


def _line(site: SiteReport) -> str:
    return caller_words(Caller(site.where, site.via))


_JUDGED = {
    "new": "too few to judge",
    "rare": "far apart: in order",
    "torch": "torch's own: in order",
    "limit": "memory is near its limit: in order",
    "parks": "the program rests after it: in order",
    "useful": "memory is better for it",
    "cheap": "costs next to nothing",
    "useless": "of no use",
}
