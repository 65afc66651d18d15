"""The ends of a snooze that are chosen with one tap."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo

HOUR = timedelta(hours=1)
MORNING = time(8)


def next_morning(now: datetime, zone: tzinfo) -> datetime:
    """The next 08:00 of the zone's own clock, after `now`; days of 23 and 25 hours are as long as they are."""
    local = now.astimezone(zone)
    today = datetime.combine(local.date(), MORNING, zone)
    morning = today if now < today else datetime.combine(local.date() + timedelta(days=1), MORNING, zone)
    return morning.astimezone(UTC)
