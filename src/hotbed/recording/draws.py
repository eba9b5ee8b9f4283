"""Further draws of guessed values: when they are worth passes of their own, and where these leave their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed.recording.values.drawn import sizes_are_drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

AUTOMATIC = 3
"""seeds, where nobody has asked for a number"""

SEED = "seed "
"""what the name of a further draw begins with among those of the passes that have begun"""

_WHOLE = ("end", "steps", "until")


def further_draws(seeds: int | None, report: Path) -> Sequence[int]:
    """What to add to the seed for each further draw, after the first has left its report at `report`.

    Empty where it did not come to its end. With `seeds` None only where sizes follow from what is drawn.
    """
    if not report.exists():
        return ()
    found = json.loads(report.read_text())
    guessed = any(not row["known"] for row in found["reads"])
    if found["ending"] not in _WHOLE or not guessed:
        return ()
    if seeds is None:
        return range(1, AUTOMATIC) if sizes_are_drawn(found["reads"]) else ()
    return range(1, seeds)


def named(mode: str, draw: int) -> str:
    """Name of the folder of a pass."""
    return f"{mode}-{draw}" if draw else mode


def with_draw(job: dict[str, Any], draw: int) -> dict[str, Any]:
    """`job` with other guesses; what is learnt goes into a folder of its own, which is made."""
    if not draw:
        return job
    values = Path(f"{job['values']}-{draw}")
    values.mkdir(exist_ok=True)
    return {**job, "draw": draw, "values": str(values)}
