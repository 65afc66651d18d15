"""How numbers, times and ranges are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.ui import words
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.kernel.partitions import Grain

NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(hours=3, minutes=32), "3 h 32 min"),
        (timedelta(days=4, hours=2), "4 d 2 h"),
        (timedelta(seconds=38), "38 s"),
        (timedelta(minutes=6, seconds=20), "6 min"),
        (timedelta(minutes=1, seconds=20), "1 min 20 s"),
        (timedelta(days=2, minutes=3), "2 d"),
        (timedelta(milliseconds=40), "40 ms"),
        (timedelta(), "0 s"),
    ],
)
def test_durations_have_two_units_at_most(span: timedelta, text: str) -> None:
    assert words.duration(span) == text


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3000)))
def test_a_duration_is_never_said_longer_than_it_is(span: timedelta) -> None:
    sizes = {"d": 86_400, "h": 3600, "min": 60, "s": 1, "ms": 0.001}
    pieces = words.duration(span).split(" ")
    total = sum(float(n) * sizes[unit] for n, unit in zip(pieces[::2], pieces[1::2], strict=True))
    assert total <= span.total_seconds() + 0.001
    assert total >= span.total_seconds() * 0.5 - 1


def test_relative_times_say_which_side() -> None:
    assert words.relative(NOW - timedelta(hours=1, minutes=52), now=NOW) == "1 h 52 min ago"
    assert words.relative(NOW + timedelta(minutes=27), now=NOW) == "in 27 min"
    assert words.relative(NOW, now=NOW) == "now"


def test_clock_times_are_as_short_as_they_may_be() -> None:
    at = lambda days: NOW - timedelta(days=days)  # noqa: E731
    assert words.clock(at(0), zone=NEW_YORK, now=NOW) == "14:32"
    assert words.clock(at(1), zone=NEW_YORK, now=NOW) == "16 Nov 14:32"
    assert words.clock(at(400), zone=NEW_YORK, now=NOW) == "13 Oct 2025 15:32"


def test_today_is_the_viewers_today() -> None:
    late = datetime(2026, 11, 18, 3, 0, tzinfo=UTC)
    assert words.clock(late, zone=NEW_YORK, now=NOW) == "22:00"
    assert words.clock(late, zone=ZoneInfo("UTC"), now=NOW) == "18 Nov 03:00"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.9898477, "98.98%"), (1.0, "100.00%"), (0.0, "0.00%"), (0.99999, "99.999%"), (0.00001, "0.001%")],
)
def test_a_share_that_is_not_whole_never_reads_as_whole(share: float, text: str) -> None:
    assert words.percent(share) == text


def test_numbers_have_commas_and_units() -> None:
    assert words.number(1_243_880) == "1,243,880"
    assert words.value_with_unit(0.9898, "share") == "98.98%"
    assert words.value_with_unit(12_720, "s") == "3 h 32 min"
    assert words.value_with_unit(3, "") == "3"
    assert words.value_with_unit(None, "") == "–"
    assert words.count(1, "row") == "1 row"
    assert words.count(2, "copy", "copies") == "2 copies"


def test_ranges_are_half_open_and_in_the_datasets_days() -> None:
    day = Interval(datetime(2026, 11, 16, 5, tzinfo=UTC), datetime(2026, 11, 17, 5, tzinfo=UTC))
    assert words.data_range(day, Grain.DAY, NEW_YORK) == "[16 Nov, 17 Nov)"
    assert words.partition(day, Grain.DAY, NEW_YORK) == "Mon 16 Nov"
    stale = Interval(datetime(2026, 11, 17, 16, tzinfo=UTC), FOREVER)
    assert words.data_range(stale, Grain.DAY, NEW_YORK) == "[17 Nov 11:00, …)"
    assert words.data_range(Interval(BEGINNING, day.end), Grain.DAY, NEW_YORK) == "[…, 17 Nov)"
    assert words.data_range(EVERYTHING, Grain.NONE, NEW_YORK) == "all data"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["2026-11-22", "2026-11-23"], "2026-11-22, 2026-11-23"),
        ([], "nothing"),
        ({"tier": 1, "days": [1, 2]}, "tier 1, days 1, 2"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (None, "nothing"),
        ("", "nothing"),
        (0.01, "0.01"),
    ],
)
def test_the_audit_log_writes_no_brackets(value: object, text: str) -> None:
    assert words.audit_value(value) == text
