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

REPLAYED_WEEK_START = datetime(2013, 11, 17, 5, tzinfo=UTC)
"""Now is played as an instant of the week that starts here: the 60 days before hold the hour that came twice
(3 November, when the clocks went back), and some weeks of flights are still to come."""


@dataclass(frozen=True)
class ReplayWindow:
    """Which days of the moved data the story tells, and how far they were moved."""

    weeks: int
    first_day: date
    last_day: date

    @property
    def shift(self) -> timedelta:
        return self.weeks * WEEK


def replay_window_at(now: datetime) -> ReplayWindow:
    """The 60 days up to `now`, and some days ahead."""
    today = now.astimezone(NEW_YORK).date()
    return ReplayWindow(weeks=(now - REPLAYED_WEEK_START) // WEEK, first_day=today - HISTORY, last_day=today + AHEAD)
