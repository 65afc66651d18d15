"""Where 2013 is moved to: by whole weeks, so that a Sunday stays a Sunday."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")
WEEK = timedelta(weeks=1)
HISTORY = timedelta(days=60)
AHEAD = timedelta(days=4)
"""How far the demo can play on from now, and still find flights."""

PLAYS_AS = datetime(2013, 11, 17, 5, tzinfo=UTC)
"""Now is played as an instant of the week that starts here: the 60 days before hold the hour that came twice
(3 November, when the clocks went back), and some weeks of flights are still to come."""


@dataclass(frozen=True)
class Window:
    """Which days of the moved data the story tells, and how far they were moved."""

    weeks: int
    first_day: date
    last_day: date

    @property
    def moved_by(self) -> timedelta:
        return self.weeks * WEEK


def window_at(now: datetime) -> Window:
    """The 60 days up to `now`, and some days ahead."""
    today = now.astimezone(NEW_YORK).date()
    return Window(weeks=(now - PLAYS_AS) // WEEK, first_day=today - HISTORY, last_day=today + AHEAD)
