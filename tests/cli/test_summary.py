"""`hotbed summary` and what it says of a condition."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from click.testing import CliRunner

from hotbed.cli.summary import command
from hotbed.trace.condition import Condition, summarize
from hotbed.units import GIB, MIB

if TYPE_CHECKING:
    from pathlib import Path

CALM = Condition(
    device=0,
    name="NVIDIA H200",
    allocated_bytes=20 * GIB,
    reserved_bytes=24 * GIB,
    whole_bytes=3 * GIB,
    pieces_bytes=GIB,
    private_bytes=0,
    pending_bytes=0,
    free_bytes=100 * GIB,
    total_bytes=140 * GIB,
    process_bytes=25 * GIB,
    others_bytes=0,
)


def acts(condition: Condition) -> list[str]:
    """What it says to do."""
    return [one.text for one in summarize(condition).advice if one.act]


def test_the_parts_of_reserved_memory_add_up(data: Path) -> None:
    result = CliRunner().invoke(
        command, [str(data / "h200/bert_varlen.record.pickle.xz"), "--json"], standalone_mode=False
    )
    now = json.loads(result.output)["condition"]
    parts = ("allocated_bytes", "whole_bytes", "pieces_bytes", "private_bytes", "pending_bytes")
    assert sum(now[part] for part in parts) == now["reserved_bytes"]
    assert now["peak_reserved_bytes"] >= now["peak_allocated_bytes"] > 0


def test_cached_memory_alone_is_no_reason_to_act() -> None:
    text = str(summarize(CALM))
    assert not acts(CALM)
    assert "the 4.0 GiB reserved beyond what is allocated serve the next requests" in text
    assert "empty_cache() would give these back, and only these" in text
    assert "outside" in text


def test_pieces_need_nothing_where_the_card_has_room() -> None:
    """A recording knows the card and this process, not what was free at its end."""
    unknown = replace(
        CALM, pieces_bytes=8 * GIB, reserved_bytes=31 * GIB, process_bytes=32 * GIB, free_bytes=None
    )
    assert not acts(unknown)
    assert len(acts(replace(unknown, total_bytes=36 * GIB))) == 1
    assert len(acts(replace(unknown, total_bytes=None))) == 1


def test_retries_pieces_and_neighbours_are() -> None:
    assert "at its limit 7 times" in acts(replace(CALM, retries=7))[0]
    pieces = replace(CALM, pieces_bytes=8 * GIB, reserved_bytes=31 * GIB)
    assert not acts(pieces)
    assert "expandable_segments:True" in acts(replace(pieces, free_bytes=GIB))[0]
    assert "expandable" not in acts(replace(pieces, free_bytes=GIB, expandable=True))[0]
    crowded = replace(
        CALM, others_bytes=90 * GIB, free_bytes=GIB, whole_bytes=20 * GIB, reserved_bytes=41 * GIB
    )
    assert any("other processes are short of memory" in text for text in acts(crowded))


def test_a_notebook_shows_a_table_and_names_are_escaped() -> None:
    html = summarize(replace(CALM, name="<b>GPU", allocated_bytes=MIB))._repr_html_()
    assert "&lt;b&gt;GPU" in html
    assert "1.0 MiB" in html
