"""The least memory that a recorded program runs in: under it the same replay fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hotbed.gpu import find_gpu
from hotbed.predicting.capacity import Capacity, roomy
from hotbed.replaying import Replayer
from hotbed.trace import load_trace
from hotbed.tuning.search import CAP_STEP_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("forking")]


@pytest.fixture(scope="module")
def capacity(data: Path) -> Iterator[Capacity]:
    with Replayer(roomy(find_gpu("h200"))) as replayer:
        yield Capacity(replayer, load_trace(data / "h200" / "streams.record.pickle.xz"))


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_it_runs_with_the_smallest_and_not_with_less(capacity: Capacity, settings: str) -> None:
    need = capacity.need(settings)
    assert need.smallest_bytes is not None
    assert need.peak_bytes is not None
    assert capacity.lower_bound_bytes <= need.smallest_bytes <= need.peak_bytes
    found = capacity.within(settings, need.smallest_bytes)
    assert found is not None
    assert found.peak_reserved_bytes <= need.smallest_bytes
    assert capacity.within(settings, need.smallest_bytes - CAP_STEP_BYTES) is None


def test_near_the_limit_the_cache_is_flushed(capacity: Capacity) -> None:
    need = capacity.need("")
    assert need.smallest_bytes is not None
    assert need.peak_bytes is not None
    assert need.smallest_bytes < need.peak_bytes
    tight, ample = capacity.within("", need.smallest_bytes), capacity.within("", need.peak_bytes)
    assert tight is not None
    assert ample is not None
    assert tight.alloc_retries > ample.alloc_retries == 0
