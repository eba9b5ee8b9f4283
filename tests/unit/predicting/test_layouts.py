"""The trace as other GPC layouts would have made it."""

from __future__ import annotations

from hotbed.predicting.layouts import variants
from hotbed.predicting.script_run import Workspace
from tests.unit.invented import ALLOC, MIB, freed, trace_of

TRACE = trace_of([(ALLOC, 0x1000, 4 * MIB), (ALLOC, 0x2000, 8 * MIB), *freed(0x2000, 8 * MIB)])


def workspace(*alternatives: int) -> Workspace:
    return Workspace(event=1, library="cudnn", bytes=8 * MIB, alternative_bytes=alternatives)


def test_other_layouts_change_the_size_of_a_workspace_and_of_its_free() -> None:
    (other,) = variants(TRACE, [workspace(6 * MIB)])
    assert other.events.size.tolist() == [4 * MIB, 6 * MIB, 6 * MIB, 6 * MIB]


def test_a_workspace_that_is_not_taken_leaves_no_event() -> None:
    (other,) = variants(TRACE, [workspace(0)])
    assert other.events.size.tolist() == [4 * MIB]
    assert len(other.events) == 1


def test_layouts_that_agree_are_one_variant() -> None:
    assert len(variants(TRACE, [workspace(6 * MIB, 6 * MIB, 8 * MIB)])) == 1


def test_without_alternatives_there_is_nothing_to_vary() -> None:
    assert variants(TRACE, [workspace()]) == []
    assert variants(TRACE, []) == []


def test_a_workspace_that_only_another_layout_takes_is_put_in() -> None:
    absent = Workspace(event=1, library="cudnn", bytes=0, alternative_bytes=(0, 6 * MIB))
    (other,) = variants(TRACE, [absent])
    assert other.events.action.tolist() == [0, 0, 1, 2, 0, 1, 2]
    assert other.events.size.tolist() == [4 * MIB, *[6 * MIB] * 3, *[8 * MIB] * 3]
    assert len(set(other.events.address.tolist())) == 3


def test_one_layout_may_leave_out_and_put_in() -> None:
    """A variant with both: what is left out does not move where the new one goes."""
    absent = Workspace(event=4, library="cudnn", bytes=0, alternative_bytes=(6 * MIB,))
    (other,) = variants(TRACE, [workspace(0), absent])
    assert other.events.size.tolist() == [4 * MIB, *[6 * MIB] * 3]
