"""What tuning found: choices with their evidence, the Recommendation, and their JSON form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1


@dataclass(frozen=True)
class Choice:
    """One configuration and what it did to the traces (the worst of them, where there are several).

    `peak_reserved_bytes` is by exact replay, `cost_ms_per_step` by the stated cost model, both at `cap_bytes`.
    """

    settings: str
    cap_bytes: int | None
    peak_reserved_bytes: int
    device_calls: int
    cost_ms_per_step: float
    cost_ms_total: float
    fits: bool = True
    """whether every trace runs to its end; if not, the figures are those up to the out-of-memory"""

    @property
    def footprint_bytes(self) -> int:
        """Memory to set aside: the replayed peak, and at least the cap, which may be used in full.

        With expandable segments the peak can pass the cap: torch tests the limit before it rounds up to pages.
        """
        return max(self.peak_reserved_bytes, self.cap_bytes or 0)

    @property
    def label(self) -> str:
        return self.settings or "default settings"


@dataclass(frozen=True)
class Margin:
    """Why the cap is above the smallest one under which the recorded run still fits. Bytes.

    `variants_bytes` is what the worst of `fitted_variants` other runs needed more (steps in another order, side
    streams at other times, other addresses, other traces); `growth_bytes` what the last third of the trace needed
    beyond the first two thirds (of several traces: the neediest beyond the next), each against its own lower bound; `guard_bytes` a fixed share on top.
    """

    needed_bytes: int
    variants_bytes: int
    growth_bytes: int
    guard_bytes: int
    fitted_variants: int

    @property
    def total_bytes(self) -> int:
        return max(self.variants_bytes, self.growth_bytes) + self.guard_bytes


@dataclass(frozen=True)
class HeldOut:
    """How the choice did on runs that had no part in choosing it.

    `runs` other runs were replayed under it, `fitted` of them without running out of memory; where one did not,
    the cap was raised by `raised_bytes` until all did.
    """

    kind: str
    runs: int
    fitted: int
    worst_peak_reserved_bytes: int
    raised_bytes: int
    fit_steps: int | None
    """steps of the part that alone gave `fit_cap_bytes`; None where steps are unknown"""
    fit_cap_bytes: int | None
    """lower bound of the whole trace, plus what the first two thirds of its steps needed beyond theirs, plus guard"""
    fit_cap_held: bool | None
    """whether the whole trace fits under that cap"""


@dataclass(frozen=True)
class Advice:
    """How one piece of common advice does on these traces, and why."""

    advice: str
    peak_reserved_bytes: int | None
    against_default_bytes: int | None
    device_calls: int | None
    verdict: str
    """"better", "worse", "same", "not applicable" or "estimate"."""
    why: str


@dataclass(frozen=True)
class Recommendation:
    """The answer of hotbed.tune, with its evidence."""

    sources: tuple[str, ...]
    goal: str
    gpu: str
    total_bytes: int
    torch_version: str
    default: Choice
    lower_bound_bytes: int
    recommended: Choice
    margin: Margin | None
    """None for a choice without a cap"""
    without_cap: Choice
    """the best choice that needs no cap, by the same goal"""
    front: tuple[Choice, ...]
    """choices that nothing found beats in both memory and cost, least memory first"""
    held_out: HeldOut | None
    advice: tuple[Advice, ...]
    steps: int
    steps_source: str
    step_ms: float | None
    budget_ms_per_step: float | None
    """what `balanced` may spend; None for the other goals"""
    cost_source: str
    replays: int
    seconds: float
    interrupted: bool
    environment_string: str = ""
    """value for the environment: the recommended settings and, for a named card and torch 2.10 or later, the cap as a
    fraction of that card"""
    python_line: str = ""
    """sets the cap from Python, before the first CUDA tensor; empty without a cap"""
    notes: tuple[str, ...] = ()

    @property
    def saving_bytes(self) -> int:
        """What the recommended choice sets aside less than today's default reserves."""
        return self.default.peak_reserved_bytes - self.recommended.footprint_bytes

    @property
    def above_lower_bound_percent(self) -> float:
        """The recommended footprint, margin included, over the lower bound."""
        return 100 * (self.recommended.footprint_bytes / self.lower_bound_bytes - 1)

    def to_json(self) -> dict[str, Any]:
        """Plain containers, schema 1: the fields above under their names, `schema`, savings and the margin."""
        return {
            "schema": SCHEMA,
            **asdict(self),
            "saving_bytes": self.saving_bytes,
            "above_lower_bound_percent": round(self.above_lower_bound_percent, 3),
            "margin_bytes": self.margin.total_bytes if self.margin else 0,
        }
