"""Which of several devices decides whether a card will do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotbed.predicting.cards import hardest
from hotbed.predicting.prediction import GpuFit

ROOMY = GpuFit(
    gpu="card",
    total_bytes=100,
    fits=True,
    headroom_bytes=40,
    smallest_bytes=60,
    fits_with_recommended=True,
    recommended_headroom_bytes=10,
    alloc_retries=0,
)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (replace(ROOMY, headroom_bytes=50, recommended_headroom_bytes=60), (True, 40, True, 10)),
        (replace(ROOMY, fits=False, headroom_bytes=-1), (False, -1, True, 10)),
        (
            replace(ROOMY, fits_with_recommended=False, recommended_headroom_bytes=-5),
            (True, 40, False, -5),
        ),
    ],
)
def test_the_device_with_the_least_room_decides_for_each_kind_of_settings(
    other: GpuFit, expected: tuple[bool, int, bool, int]
) -> None:
    found = hardest([ROOMY, other])
    assert expected == (
        found.fits,
        found.headroom_bytes,
        found.fits_with_recommended,
        found.recommended_headroom_bytes,
    )
