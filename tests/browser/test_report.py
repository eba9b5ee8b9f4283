"""The report as someone uses it: what the page shows is what the trace says."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("playwright", reason="run `make browser-test`")

from playwright.sync_api import expect

from hotbed.findings.case import Case
from hotbed.findings.difference import between_runs
from hotbed.trace import Frame, load_trace
from hotbed.units import format_size
from tests.unit.invented import ALLOC, GROW, MIB, REQUEST, freed, trace_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from hotbed.trace import Trace

    Show = Callable[..., Page]


@pytest.fixture(scope="session")
def stacked(data: Path) -> Trace:
    """A recording with stacks: four steps of resnet50."""
    return load_trace(data / "h200/resnet50.frames.pickle.xz")


def chosen(page: Page) -> dict[str, str]:
    """The panel about the chosen event: name → value."""
    names = page.locator("#chosen dt").all_text_contents()
    return dict(zip(names, page.locator("#chosen dd").all_text_contents(), strict=True))


def exact(text: str) -> int:
    """The bytes in "1.5 KiB (1,536 B)"."""
    found = re.search(r"\(([\d,]+) B\)", text)
    assert found is not None, text
    return int(found[1].replace(",", ""))


def tip(page: Page) -> dict[str, str]:
    """The box beside the pointer: name → value."""
    rows = page.locator("#tip .row").all()
    return {row.locator("span").nth(0).inner_text(): row.locator("span").nth(1).inner_text() for row in rows}


def timeline_box(page: Page) -> dict[str, float]:
    """Where the timeline is on the screen, once scrolled there."""
    page.locator("#timeline").scroll_into_view_if_needed()
    box = page.locator("#timeline").bounding_box()
    assert box is not None
    return dict(box)


def rows(page: Page, table: str) -> list[list[str]]:
    """The cells of a table, row by row."""
    return [row.locator("td").all_text_contents() for row in page.locator(f"#{table} tbody tr").all()]


def test_the_peaks_are_those_of_the_trace(show: Show, stacked: Trace) -> None:
    page, case = show(stacked), Case(stacked)
    assert page.inner_text("#peak-allocated") == format_size(case.allocated_at(case.peak))
    assert page.inner_text("#peak-reserved") == format_size(case.reserved_at(case.reserved_peak))
    shown = chosen(page)
    assert exact(shown["allocated"]) == case.allocated_at(case.peak)
    assert exact(shown["reserved"]) == case.reserved_at(case.peak)


def test_every_level_that_keys_reach_is_that_of_the_trace(show: Show, stacked: Trace) -> None:
    page, case = show(stacked), Case(stacked)
    page.focus("#timeline")
    event = case.peak - 1
    for _ in range(12):
        page.keyboard.press("+")
    expect(page.locator("#timeline")).to_have_attribute("data-span", "4")
    for key, step in (
        ("ArrowRight", 1),
        ("ArrowRight", 1),
        ("PageDown", 100),
        ("ArrowLeft", -1),
        ("PageUp", -100),
    ):
        page.keyboard.press(key)
        event += step
        expect(page.locator("#timeline")).to_have_attribute("aria-valuenow", str(event))
        assert exact(chosen(page)["allocated"]) == case.allocated_at(event + 1)
        assert exact(chosen(page)["reserved"]) == case.reserved_at(event + 1)


def test_zooming_in_ends_at_single_events_and_hovering_reads_them(show: Show, stacked: Trace) -> None:
    page = show(stacked)
    box = timeline_box(page)
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 150)
    for _ in range(40):
        page.mouse.wheel(0, -200)
    expect(page.locator("#timeline")).to_have_attribute("data-span", "4")
    page.mouse.move(box["x"] + box["width"] * 0.6 + 1, box["y"] + 151)
    read = tip(page)
    event = int(read["event"].split()[0].replace(",", ""))
    assert exact(read["size"]) == stacked.events.size[event]
    assert (
        read["event"].split()[1]
        == ("alloc", "free", "free", "segment", "segment")[stacked.events.action[event]]
    )
    assert exact(read["allocated"]) == Case(stacked).allocated_at(event + 1)
    page.dblclick("#timeline")
    expect(page.locator("#shown")).to_contain_text(f"0 to {len(stacked.events):,}")


def test_dragging_zooms_and_the_axis_of_time_keeps_the_stretch(show: Show, stacked: Trace) -> None:
    page = show(stacked)
    box = timeline_box(page)
    page.mouse.move(box["x"] + 300, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 150, steps=4)
    page.mouse.up()
    expect(page.locator("#shown")).not_to_contain_text("events 0 to")
    page.select_option("#axis", "time")
    expect(page.locator("#shown")).to_contain_text(re.compile("m?s to"))
    assert not page.inner_text("#shown").startswith("Showing 0 ")


def test_the_memory_map_is_that_of_the_case(show: Show, stacked: Trace) -> None:
    page, case = show(stacked), Case(stacked)
    page.click("#tables-map summary")
    segments = case.map_at(case.peak)
    shown = rows(page, "table-segments")
    assert [row[0] for row in shown] == [f"{segment.address:#x}" for segment in segments][: len(shown)]
    for row, segment in zip(shown, segments, strict=False):
        live = [block.size_bytes for block in segment.blocks if block.state == "active_allocated"]
        free = [block.size_bytes for block in segment.blocks if block.state == "inactive"]
        sizes = (segment.size_bytes, sum(live), sum(free), max(free, default=0))
        assert row[1:5] == [format_size(size) for size in sizes]
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    assert "size" in page.inner_text("#map-told")


def test_the_flame_graph_adds_up_to_what_lines_hold(show: Show, stacked: Trace) -> None:
    page, case = show(stacked), Case(stacked)
    page.click("#tables-flame summary")
    shares = case.by_line(case.allocations.live_at(case.peak))
    assert [exact(row[1]) for row in rows(page, "table-lines")] == [share.bytes for share in shares]
    held = int(sum(share.bytes for share in shares))
    assert exact(page.inner_text("#flame-at")) == held
    page.fill("#flame-search", "no such function")
    assert "0 B" in page.inner_text("#flame-found")
    page.fill("#flame-search", "workloads.py")
    assert "matches hold" in page.inner_text("#flame-found")
    page.focus("#flame")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert exact(page.inner_text("#flame-at")) < held


def test_categories_are_stacked_as_the_trace_has_them(show: Show) -> None:
    trace = trace_of([(GROW, 0x100000, 64 * MIB), (ALLOC, 0x100000, 8 * MIB), (ALLOC, 0x900000, 4 * MIB),
                      (REQUEST, 0x100000, 8 * MIB), (ALLOC, 0xD00000, MIB)])  # fmt: skip
    category = np.array([-1, 0, 1, 0, 1], np.int32)
    trace = replace(
        trace, events=replace(trace.events, category=category), strings=("parameters", "activations")
    )
    page = show(trace)
    page.click("#tables-timeline summary")
    page.focus("#timeline")
    page.keyboard.press("End")
    expect(page.locator("#timeline")).to_have_attribute("aria-valuenow", "4")
    held = dict(rows(page, "table-levels"))
    assert held == {
        "parameters": "0 B",
        "activations": "5.0 MiB",
        "freed, waiting for another stream": "8.0 MiB",
    }


def test_every_control_is_reached_with_the_tab_key_and_seen(show: Show, stacked: Trace) -> None:
    page = show(stacked)
    wanted = {"theme", "scheme", "axis", "zoom-in", "to-allocated", "timeline", "chosen-stack", "flame-by", "flame-search",
              "flame", "map-order", "map-scale", "map"}  # fmt: skip
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        if wanted <= reached:
            break
    assert wanted <= reached
    unnamed = "[...document.querySelectorAll('canvas:not([aria-hidden]), button, select, input')].filter((e) => !e.ariaLabel && !e.textContent && !e.labels?.length && !e.getAttribute('aria-labelledby')).map((e) => e.id)"
    assert page.evaluate(unnamed) == []


def test_light_and_dark_follow_the_system_and_the_button(show: Show, stacked: Trace) -> None:
    page = show(stacked, scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: light"
    light = page.evaluate(background)
    page.click("#theme")
    assert page.evaluate(background) == dark != light
    page.emulate_media(color_scheme="light")
    page.click("#theme")
    assert page.evaluate(background) == light


def test_names_of_strangers_do_no_harm(show: Show) -> None:
    nasty = "</script><img src=x onerror=alert(1)><b>"
    trace = trace_of([(GROW, 0x100000, 64 * MIB), (ALLOC, 0x100000, 8 * MIB), *freed(0x100000, 8 * MIB)])
    events = replace(
        trace.events, stack=np.array([-1, 0, 0, 0], np.int32), category=np.array([-1, 0, 0, 0], np.int32)
    )
    trace = replace(
        trace, events=events, stacks=((Frame(nasty, 7, nasty),),), strings=(nasty,), settings=nasty
    )
    page = show(trace, name=nasty)
    assert page.inner_text("h1") == nasty
    assert nasty in page.inner_text("#chosen-stack")
    for details in page.locator("details summary").all():
        details.click()
    page.hover("#flame", position={"x": 60, "y": 30})
    page.hover("#timeline", position={"x": 400, "y": 200})
    assert page.locator("img, main b").count() == 0


def test_of_a_long_trace_the_rest_is_an_outline(show: Show, stacked: Trace) -> None:
    page, case = show(stacked, most_events=2048), Case(stacked)
    assert "Thinned" in page.inner_text("main")
    box = timeline_box(page)
    first = case.reserved_peak > len(stacked.events) / 2
    page.mouse.move(box["x"] + (90 if first else box["width"] - 40), box["y"] + 150)
    assert "not held one by one" in page.inner_text("#tip")


def test_a_finding_leads_to_its_events(show: Show, stacked: Trace) -> None:
    page = show(stacked)
    button = page.locator("button[data-from]").first
    first, end = int(button.get_attribute("data-from") or 0), int(button.get_attribute("data-to") or 0)
    button.click()
    expect(page.locator("#timeline")).to_be_focused()
    expect(page.locator("#shown")).not_to_contain_text(f"events 0 to {len(stacked.events):,}")
    assert first <= int(page.locator("#timeline").get_attribute("aria-valuenow") or -1) < max(end, first + 1)


def test_two_runs_stand_side_by_side(show: Show, stacked: Trace, data: Path) -> None:
    other = load_trace(data / "h200/leak.frames.pickle.xz")
    found = between_runs(("a", "b"), (Case(other), Case(stacked)))
    page = show(stacked, difference=found)
    peak = {row.name: row for row in found.rows if row.kind == "peak"}["peak reserved"]
    shown = {row[0]: row[1:] for row in rows(page, "table-totals")}["peak reserved"]
    assert shown[:2] == [format_size(peak.first_bytes), format_size(peak.second_bytes)]
    assert shown[2] == f"+{format_size(peak.second_bytes - peak.first_bytes)}"


def test_a_file_without_events_still_shows_what_it_has(show: Show) -> None:
    page = show(trace_of([]))
    assert page.is_hidden("#timeline-panel")
    assert page.inner_text("#peak-reserved") == "0 B"
