"""The machine's clock was set back: what was planned, or noted, by the time that was wrong is later than it can be.

The database keeps the latest instant that was seen. Where the clock shows an earlier one, each app puts its instants right
(`LAKEHUB_ON_CLOCK_SET_BACK`): else nothing would be due for as long as the clock was ahead, restarts included.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, ExpressionWrapper, F, QuerySet
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from lakehub.clock.models import LatestInstant

logger = logging.getLogger(__name__)

TOLERANCE = timedelta(seconds=10)
"""A clock that is adjusted by less changes nothing that anybody sees."""
NOTE_EVERY = timedelta(minutes=1)


def note_time(*, now: datetime) -> timedelta:
    """Notes the time, and puts right what is later than can be. By how much the clock was set back: nothing, as a rule."""
    with transaction.atomic():
        row, is_new = LatestInstant.objects.select_for_update().get_or_create(id=1, defaults={"at": now})
        back = row.at - now
        if is_new or -NOTE_EVERY < back <= TOLERANCE:
            return timedelta()
        LatestInstant.objects.update(at=now)
        if back < timedelta():
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
