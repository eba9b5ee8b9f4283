"""Bars of text: heights and lengths follow the values."""

from __future__ import annotations

from hotbed.reporting.bars import curve_bars, share_bar


def test_curve_bars_rise_with_the_curve() -> None:
    assert curve_bars([0, 1, 4, 8, 9], 8) == " ▁▄██"
    assert curve_bars([0, 0], 0) == "  "
    assert curve_bars([], 8) == ""


def test_a_share_is_as_long_as_its_part_of_the_whole() -> None:
    assert share_bar(8, 8, 4) == "████"
    assert share_bar(3, 8, 4) == "█▌"
    assert share_bar(0, 8, 4) == ""
    assert share_bar(9, 8, 4) == "████"
