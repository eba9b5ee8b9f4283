"""What `hotbed fit` answers: the Prediction, its parts, and their JSON form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hotbed.predicting.script_run import failed_by_itself

if TYPE_CHECKING:
    from hotbed.predicting.script_run import Ending, Read, ScriptError
    from hotbed.trace.recorded import Phase

SCHEMA = 1


@dataclass(frozen=True)
class Range:
    """Least and most bytes over what is not known, e.g. the GPC layout of the card."""

    low: int
    high: int


@dataclass(frozen=True)
class CategoryBytes:
    """Bytes of one category at the moment of the allocated peak, and the most it ever held."""

    category: str
    at_peak_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class StepPeak:
    """Peaks within one stretch of the program. `index` counts within its phase from 0."""

    phase: Phase
    index: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    live_at_end_bytes: int
    by_category: tuple[CategoryBytes, ...]


@dataclass(frozen=True)
class DevicePeaks:
    """Peaks of one of several devices."""

    device: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    by_category: tuple[CategoryBytes, ...]


@dataclass(frozen=True)
class SeedPeaks:
    """Peaks on the heaviest device with the guesses of one seed."""

    seed: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int


@dataclass(frozen=True)
class Overhead:
    """Device memory that no allocator sees: context, modules and handles of the libraries that were used.

    `parts` are (what, bytes); `measured_on` names the card whose growth was measured, and `estimated` says whether
    another card was asked for.
    """

    bytes: int
    parts: tuple[tuple[str, int], ...]
    measured_on: str
    estimated: bool


@dataclass(frozen=True)
class GpuFit:
    """Whether the program fits one GPU, under default and under recommended settings.

    `smallest_bytes` is the least device memory at which it ran under those settings; `headroom_bytes` what the card
    has beyond it (negative: what it lacks). `estimated` is None, or says why this answer is no exact one, e.g. the
    program ran on another architecture.
    """

    gpu: str
    total_bytes: int
    fits: bool
    headroom_bytes: int
    smallest_bytes: int
    fits_with_recommended: bool | None
    recommended_headroom_bytes: int | None
    alloc_retries: int
    """times the allocator had to flush its cache on this card with default settings"""
    estimated: str | None = None


@dataclass(frozen=True)
class Prediction:
    """The memory that a program needs, found by running it on a phantom GPU.

    Peaks are bytes on the heaviest device. `peak_reserved_bytes` holds for the most likely layout of the card,
    `peak_reserved_range_bytes` over all layouts tried, and over the seeds where sizes rest on guesses: the figures are
    then those of the seed that reserved most, and the range ends as far above it as the seeds lie apart. `device_used_bytes` is what nvidia-smi would show for the process
    at its peak: reserved memory and `overhead`. `guesses` are the reads that rest on a policy.
    """

    program: str
    gpu: str
    settings: str
    torch_version: str
    ending: Ending
    optimizer_steps: int
    device: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_reserved_range_bytes: Range
    device_used_bytes: int
    overhead: Overhead
    by_category: tuple[CategoryBytes, ...]
    steps: tuple[StepPeak, ...]
    fits: tuple[GpuFit, ...]
    """the asked GPU first, then the catalogue by memory"""
    fits_asked: bool | None
    """None: what was seen does not tell; `unknown` says why"""
    margin_bytes: int
    """to add to the reserved peak when it becomes a cap"""
    recommended_settings: str | None
    """None: nothing better than what was in force was found, or nothing was looked for"""
    guesses: tuple[Read, ...]
    reads: tuple[Read, ...]
    not_modelled: tuple[str, ...]
    warnings: tuple[str, ...]
    error: ScriptError | None
    script_exit_code: int | None
    trace: str | None
    """path of the .hbt file"""
    wall_seconds: float
    host_peak_bytes: int
    passes: tuple[str, ...]
    seeds: tuple[SeedPeaks, ...] = ()
    """each seed that guesses were drawn with, where there were several"""
    other_devices: tuple[DevicePeaks, ...] = ()
    """the lighter devices"""
    recommended_how: str | None = None
    """how other settings were looked for; None if they were not"""
    unknown: str | None = None
    """why fits_asked is None, in words"""
    undershoots: str | None = None
    """why the program would need more than the figures say, in words; also among the warnings"""
    uses_gpu: bool = True
    """whether the program's process had a CUDA context"""

    @property
    def program_failed(self) -> bool:
        """Whether the program came to a bad end of its own: an exception, a signal, an exit status."""
        return failed_by_itself(self.ending, self.script_exit_code)

    def to_json(self) -> dict[str, Any]:
        """Plain containers, schema 1: the fields above under their names, and `schema`; ranges are [low, high]."""
        plain = {"schema": SCHEMA, **asdict(self)}
        plain["peak_reserved_range_bytes"] = [
            self.peak_reserved_range_bytes.low,
            self.peak_reserved_range_bytes.high,
        ]
        return plain
