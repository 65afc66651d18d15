"""Sparks, bars, the calendar and the time line: geometry."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from frontend.screens.dataset.partition_calendar import DayStatus, build_calendar
from frontend.ui import svg
from lakehub.kernel.interval import Interval

TODAY = date(2026, 11, 17)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_a_spark_stays_in_its_box(values: list[float]) -> None:
    drawn = svg.spark(values)
    points = [tuple(map(float, pair.split())) for pair in re.split("[ML]", drawn.path)[1:]]
    assert all(0 <= x <= drawn.width and 0 <= y <= drawn.height for x, y in points)
    assert points[-1] == (drawn.end_x, drawn.end_y)


def test_no_values_draw_nothing() -> None:
    assert svg.spark([]).path == ""


def test_segments_fill_the_bar() -> None:
    parts = svg.segments(["pass", "fail", "pass"])
    assert [part.state for part in parts] == ["pass", "fail", "pass"]
    assert parts[-1].x + parts[-1].width == 100


def test_the_calendar_ends_today_and_starts_with_the_first_day_known() -> None:
    days = {TODAY - timedelta(days=back): DayStatus(rows=100 + back) for back in range(1, 20)}
    drawn = build_calendar(days, today=TODAY)
    assert len(drawn.weeks) == 4
    tuesdays = dict(drawn.rows)["Tue"]
    assert tuesdays[-1][1] is not None
    assert tuesdays[-1][1].state == "running"
    assert dict(drawn.rows)["Wed"][-1][1] is None  # tomorrow
    assert (drawn.least, drawn.most) == (101, 119)


def test_a_bad_day_shows_its_state_and_says_why() -> None:
    yesterday = TODAY - timedelta(days=1)
    drawn = build_calendar({yesterday: DayStatus(985, "fail", "Row count fail in dc2")}, today=TODAY)
    cell = dict(drawn.rows)["Mon"][-1][1]
    assert cell is not None
    assert (cell.state, cell.glyph) == ("fail", "×")
    assert cell.label == "Mon 16 Nov: 985 rows written, Row count fail in dc2"


@given(st.dictionaries(st.integers(0, 600), st.integers(0, 10**6), max_size=80))
def test_amounts_are_fifths(rows: dict[int, int]) -> None:
    drawn = build_calendar({TODAY - timedelta(days=back): DayStatus(n) for back, n in rows.items()}, today=TODAY)
    cells = [cell for _, row in drawn.rows for _, cell in row if cell]
    assert all(0 <= cell.amount <= 5 for cell in cells)
    assert all((cell.amount == 0) == (": 0 rows" in cell.label) for cell in cells)
    assert len(drawn.weeks) <= 40


def test_lanes_cut_what_lies_outside() -> None:
    start = datetime(2026, 11, 14, tzinfo=UTC)
    window = Interval(start, start + timedelta(days=4))
    wide = svg.Bar(Interval(start - timedelta(days=9), start + timedelta(days=99)), "fail", "stale")
    drawn = svg.lanes(window, [(start + timedelta(days=at), f"day {at}") for at in range(4)], [wide], 320, "s")
    assert drawn.lanes[0].x == 8
    assert drawn.lanes[0].width == 304
    assert drawn.description == "stale"


@given(st.lists(st.none() | st.integers(0, 10**12), min_size=1, max_size=168), st.data())
def test_counts_are_columns_from_the_base_line(counts: list[int | None], data: st.DataObject) -> None:
    """Whatever is not 0 is seen, and what is marked is marked from top to base, also where nothing was counted."""
    marked = data.draw(st.sets(st.sampled_from(range(len(counts)))))
    drawn = svg.count_chart(counts, marked, [(0, "today")], str, 320, "s")
    columns = [[float(each) for each in re.findall(r"[\d.]+", path)] for path in drawn.areas.split("Z")[:-1]]
    assert len(columns) == sum(1 for count in counts if count)
    assert all(
        drawn.left <= x < end <= drawn.width and 8 <= top < base == drawn.base for x, base, top, end, _ in columns
    )
    assert min([top for _, _, top, _, _ in columns], default=8) == 8
    assert drawn.marked.count("V8H") == len(marked)
    assert [label for _, label in drawn.levels] == ["0", str(max([1, *filter(None, counts)]))]
