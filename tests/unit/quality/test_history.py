"""Which partitions are tested, against a slow model that looks at every day there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_at
from quality.domain.scheduling import history
from quality.domain.scheduling.history import History, history_of, partitions_from
from quality.domain.timeliness.production_calendar import parse_calendar

NEW_YORK = ZoneInfo("America/New_York")
DAY = timedelta(days=1)
WORKDAYS = parse_calendar("0 6 * * mon-fri", "", NEW_YORK)
NOW = datetime(2026, 11, 16, 15, tzinfo=UTC)
"""A Monday."""


def day(number: int) -> Interval:
    """So many days after 1 October 2026; the clocks change on 1 November."""
    return partition_at(datetime(2026, 10, 1, 12, tzinfo=NEW_YORK) + number * DAY, Grain.DAY, NEW_YORK)


def history_by_day(rows: dict[Interval, int], produced: bool = False, now: datetime = NOW) -> History:
    calendar = WORKDAYS if produced else None
    return history_of(rows, grain=Grain.DAY, zone=NEW_YORK, produced=calendar, now=now)


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 2), max_size=25), st.booleans(), st.sampled_from([2, 5, 100]))
def test_what_holds_rows_is_tested_and_what_is_expected_between(
    rows: dict[int, int], produced: bool, widest: int
) -> None:
    """The slow model walks back from the newest day with rows, and ends where too many expected days in a row have none."""
    with patch.object(history, "max_gap", lambda grain: widest):
        answer = history_by_day({day(number): count for number, count in rows.items()}, produced)
    there = [number for number in rows if day(number).start <= NOW]
    full = [number for number in there if rows[number]]
    holes, gap = set[int](), list[int]()
    for number in range(max(full, default=0), min(there, default=0) - 1, -1):
        if rows.get(number):
            holes, gap = holes | set(gap), []
        elif not produced or day(number).start.astimezone(NEW_YORK).weekday() < 5:
            gap.append(number)
        if len(gap) > widest:
            gap = []
            break
    assert answer.partitions == tuple(day(number) for number in sorted({*full, *(holes | set(gap) if full else ())}))
    assert answer.since == (day(min(there)).start if there else None)


@pytest.mark.parametrize("grain", [Grain.HOUR, Grain.DAY, Grain.WEEK, Grain.MONTH])
def test_one_row_of_1970_makes_no_holes(grain: Grain) -> None:
    """Its own partition is tested, and what lies between it and the data of today is no hole. A gap in today's data is some."""
    recent = partition_at(NOW, grain, NEW_YORK)
    stray = partition_at(datetime(1970, 1, 1, 12, tzinfo=UTC), grain, NEW_YORK)
    before = partition_at(recent.start - timedelta(microseconds=1), grain, NEW_YORK)
    earlier = partition_at(before.start - timedelta(microseconds=1), grain, NEW_YORK)
    answer = history_of({stray: 1, earlier: 9, recent: 9}, grain=grain, zone=NEW_YORK, produced=None, now=NOW)
    assert answer == History(stray.start, (stray, earlier, before, recent))


def test_a_weekend_without_hours_is_a_hole_and_a_quarter_is_none() -> None:
    def missing(hours: int) -> int:
        old, new = (partition_at(at, Grain.HOUR, NEW_YORK) for at in (NOW - timedelta(hours=hours), NOW))
        answer = history_of({old: 1, new: 1}, grain=Grain.HOUR, zone=NEW_YORK, produced=None, now=NOW)
        return len(answer.partitions) - 2

    assert [missing(hours) for hours in (63, 721, 722)] == [62, 720, 0]


def test_data_that_ended_long_ago_is_tested_and_nothing_after_it() -> None:
    """182 days of 2001: no unit of the quarter of a century that followed."""
    first = partition_at(datetime(2001, 1, 1, 12, tzinfo=UTC), Grain.DAY, NEW_YORK).start
    days = [partition_at(first + number * DAY + DAY / 2, Grain.DAY, NEW_YORK) for number in range(182)]
    answer = history_by_day(dict.fromkeys(days, 17_000))
    assert answer == History(first, tuple(days))


@pytest.mark.parametrize("gap", [1, 25])
def test_history_is_bounded_by_a_number(monkeypatch: pytest.MonkeyPatch, gap: int) -> None:
    """Two lone days show as many holes as are looked at, the newest."""
    monkeypatch.setattr(history, "MAX_PARTITIONS", 10)
    many = {day(number): 1 for number in range(30)}
    assert history_by_day(many).partitions == tuple(day(number) for number in range(20, 30))
    sparse = {partition_at(NOW - gap * DAY, Grain.DAY, NEW_YORK): 1, partition_at(NOW, Grain.DAY, NEW_YORK): 1}
    assert len(history_by_day(sparse).partitions) == (2 if gap == 1 else 12)


def test_what_is_dated_ahead_is_no_history() -> None:
    ahead = partition_at(datetime(2031, 1, 1, 12, tzinfo=UTC), Grain.DAY, NEW_YORK)
    assert history_by_day({day(3): 1, ahead: 5}).partitions == (day(3),)


def test_from_onboarding_on_each_day_is_awaited() -> None:
    def awaited(begin: Interval, produced: bool) -> list[str]:
        calendar = WORKDAYS if produced else None
        partitions = partitions_from(begin.start, NOW, grain=Grain.DAY, zone=NEW_YORK, produced=calendar)
        return [f"{partition.start.astimezone(NEW_YORK):%a %d}" for partition in partitions]

    assert awaited(day(43), False) == ["Fri 13", "Sat 14", "Sun 15", "Mon 16"]
    assert awaited(day(43), True) == ["Fri 13", "Mon 16"]
    assert awaited(day(47), True) == []
    saturday = datetime(2026, 11, 14, 15, tzinfo=UTC)
    ahead = partitions_from(day(44).start, saturday, grain=Grain.DAY, zone=NEW_YORK, produced=WORKDAYS)
    assert list(ahead) == [day(46)]
