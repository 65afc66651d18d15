"""The machine's clock was set back: what was planned, or noted, by the time that was wrong is later than it can be.

The database keeps the latest instant that was noted. Where the clock shows an earlier one, each app puts its instants right
(`LAKEHUB_ON_CLOCK_SET_BACK`): else nothing would be due for as long as the clock was ahead, restarts included. A note is a
minute old at most, so `ClockWatch` tells when one is needed sooner: a clock may be ahead for less than a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import DateTimeField, ExpressionWrapper, F, QuerySet
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from lakehub.clock.models import LatestInstant

logger = logging.getLogger(__name__)

TOLERANCE = timedelta(seconds=10)
"""A clock that is adjusted by less changes nothing that anybody sees."""
NOTE_EVERY = timedelta(minutes=1)
_DEADLOCK = "40P01"
"""PostgreSQL ends one of two transactions that wait for each other. This one writes what all others do, in an order of its own."""


class ClockWatch:
    """Notes the time once a minute, and at once where the clock was set: it runs otherwise than the monotonic one."""

    def __init__(self, *, now: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._now, self._monotonic = now, monotonic
        self._noted_at = float("-inf")
        # Both as the instant at which the monotonic clock was 0, which stays the same until a clock is set.
        self._noted = self._furthest = now() - timedelta(seconds=monotonic())

    def look(self) -> timedelta:
        """By how much the clock was set back. Raises DatabaseError; the next look tries again."""
        now, uptime = self._now(), self._monotonic()
        start = now - timedelta(seconds=uptime)
        # Also where the database could not be told of it: others may have planned by that time.
        self._furthest = max(self._furthest, start)
        is_set = max(abs(start - self._noted), self._furthest - start) > TOLERANCE
        if not is_set and uptime - self._noted_at < NOTE_EVERY.total_seconds():
            return timedelta()
        back = note_time(now=now, expected=self._furthest + timedelta(seconds=uptime))
        self._noted_at, self._noted, self._furthest = uptime, start, start
        return back


def note_time(*, now: datetime, expected: datetime | None = None, attempts: int = 3) -> timedelta:
    """Notes the time, and puts right what is later than can be. By how much the clock was set back: nothing, as a rule.

    `expected`: what the clock would show, had nobody set it back since it was read before.
    """
    try:
        return _note_time(now, expected)
    except OperationalError as problem:
        if attempts <= 1 or getattr(problem.__cause__, "sqlstate", "") != _DEADLOCK:
            raise
    return note_time(now=now, expected=expected, attempts=attempts - 1)


def _note_time(now: datetime, expected: datetime | None) -> timedelta:
    with transaction.atomic():
        row, _ = LatestInstant.objects.select_for_update().get_or_create(id=1, defaults={"at": now})
        back = max(row.at, expected or row.at) - now
        if back > TOLERANCE or now - row.at > TOLERANCE:
            LatestInstant.objects.update(at=now)
        if back <= TOLERANCE:
            return timedelta()
        logger.warning("The clock was set back by %s: what was planned by the wrong time is planned anew", back)
        for path in settings.LAKEHUB_ON_CLOCK_SET_BACK:
            import_string(path)(now=now, back=back)
    return back


def bring_back(rows: QuerySet[Any], *fields: str, now: datetime) -> None:
    """What these say is later than `now` cannot have been, or waits for a time that was wrong: it is `now`."""
    for field in fields:
        rows.filter(**{f"{field}__gt": now}).update(**{field: now})


def shift(rows: QuerySet[Any], *fields: str, now: datetime, back: timedelta) -> None:
    """What lies ahead by intention, counted from a time that was wrong, is earlier by as much."""
    for field in fields:
        rows.filter(**{f"{field}__gt": now}).update(**{field: F(field) - back})


def shorten_leases(rows: QuerySet[Any], field: str, lease: timedelta) -> None:
    """No lease lasts longer than it is given; by the database's clock, which was wrong too."""
    longest = ExpressionWrapper(Now() + lease, output_field=DateTimeField[datetime, datetime]())
    rows.filter(**{f"{field}__gt": longest}).update(**{field: longest})
