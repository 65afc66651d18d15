"""The partition calendar: weekday rows, week columns, a cell a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from frontend.ui import words

WEEKS = 40
_WEEK = timedelta(days=7)
_GLYPHS = {"fail": "×", "unknown": "?", "warn": "!", "grace": "…", "suppressed": "–", "snoozed": "z"}


@dataclass(frozen=True)
class DayStatus:
    """What is known of one day. `state` shows only where it is not pass."""

    rows: int = 0
    state: str = "pass"
    text: str = ""
    link: str = ""


@dataclass(frozen=True)
class DayCell:
    """A day as it is drawn. `amount` 1 to 5 is how much was written."""

    day: date
    amount: int
    state: str
    glyph: str
    label: str
    link: str


@dataclass(frozen=True)
class WeekColumn:
    label: str
    shown: bool
    """The month's name is shown over its first week; other weeks say theirs to screen readers."""
    old: str
    """3 the oldest: narrow places leave those out first."""


@dataclass(frozen=True)
class PartitionCalendar:
    weeks: tuple[WeekColumn, ...]
    rows: tuple[tuple[str, tuple[tuple[str, DayCell | None], ...]], ...]
    """(weekday, (old, cell) by week); None: a day that is not there yet, or before the first."""
    least: int
    most: int


def build_calendar(days: Mapping[date, DayStatus], *, today: date, weeks: int = WEEKS) -> PartitionCalendar:
    """The last `weeks` weeks up to today, starting no earlier than the first day known."""
    monday = today - timedelta(days=today.weekday())
    first_known = min((day for day in days if day <= today), default=today)
    start = max(monday - _WEEK * (weeks - 1), first_known - timedelta(days=first_known.weekday()))
    mondays = [start + _WEEK * at for at in range((monday - start) // _WEEK + 1)]
    counts = sorted(day.rows for day in days.values() if day.rows)
    ages = [_age_class(len(mondays) - at) for at in range(len(mondays))]
    rows = tuple(
        (
            (start + timedelta(days=weekday)).strftime("%a"),
            tuple(
                (age, _day_cell(monday + timedelta(days=weekday), days, counts, today))
                for age, monday in zip(ages, mondays, strict=True)
            ),
        )
        for weekday in range(7)
    )
    # The first week is named only where the name of the month after it leaves room.
    room = not any(_starts_month(monday) for monday in mondays[1:4])
    heads = tuple(
        _week_column(monday, age, room and at == 0) for at, (monday, age) in enumerate(zip(mondays, ages, strict=True))
    )
    return PartitionCalendar(heads, rows, counts[0] if counts else 0, counts[-1] if counts else 0)


def _age_class(weeks_ago: int) -> str:
    return "3" if weeks_ago > 30 else "2" if weeks_ago > 22 else "1" if weeks_ago > 16 else ""


def _starts_month(monday: date) -> bool:
    return monday.day <= 7


def _week_column(monday: date, age: str, first: bool) -> WeekColumn:
    starts_month = _starts_month(monday)
    return WeekColumn(f"{monday:%b}" if starts_month else words.day(monday), starts_month or first, age)


def _day_cell(day: date, days: Mapping[date, DayStatus], counts: list[int], today: date) -> DayCell | None:
    day_status = days.get(day)
    if day > today or (day_status is None and day != today):
        return None
    day_status = day_status or DayStatus()
    state = "running" if day == today and day_status.state == "pass" else day_status.state
    status_text = day_status.text or ("not over" if state == "running" else state)
    label = f"{words.weekday(day)}: {words.count(day_status.rows, 'row')} written, {status_text}"
    return DayCell(day, _amount_level(day_status.rows, counts), state, _GLYPHS.get(state, ""), label, day_status.link)


def _amount_level(rows: int, counts: list[int]) -> int:
    """Which fifth of the usual range, without the twentieth at each end; 0 for none."""
    if not rows or not counts:
        return 0
    edge = len(counts) // 20
    least, most = counts[edge], counts[-1 - edge]
    share = (rows - least) / (most - least) if most > least else 0.5
    return min(5, max(1, 1 + int(5 * share)))
