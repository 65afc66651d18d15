"""Once a day, however often it is woken up: the newest lineage is read, and the tables of all datasets are looked at."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Now

from lakehub.catalog.lineage import LineageSource, edges, missing_tables
from lakehub.catalog.models import LineageDay
from lakehub.db.lease_renewal import keep_renewed
from lakehub.kernel.backoff import Backoff

logger = logging.getLogger(__name__)
LEASE_DURATION = timedelta(seconds=60)
MAX_ATTEMPTS = 6
RETRY_BACKOFF = Backoff(base=timedelta(minutes=5), cap=timedelta(hours=4))


def run_daily_check(
    source: Callable[[], LineageSource] | None, *, name: str, offboard_after: timedelta | None, now: datetime
) -> LineageDay | None:
    """None: nothing is due, or another worker is at it. `source` None: no lineage, only the look at the tables."""
    day = _claim_day(now)
    if day is None:
        return None
    with keep_renewed(partial(_extend_lease, day), every=LEASE_DURATION / 4):
        report, error = run_check(source, name=name, offboard_after=offboard_after, now=now)
    failed = bool(error) and day.attempt < MAX_ATTEMPTS
    ended = {"due_at": now + RETRY_BACKOFF.delay(day.attempt - 1, 0.0)} if failed else {"ended_at": now}
    LineageDay.objects.filter(pk=day.pk).update(source=name, report=report, error=error, leased_until=None, **ended)
    day.refresh_from_db()
    return day


def run_check(
    source: Callable[[], LineageSource] | None,
    *,
    name: str,
    offboard_after: timedelta | None,
    accept_loss: bool = False,
    now: datetime,
) -> tuple[dict[str, Any], str]:
    """What changed, and what went wrong with lineage: that costs the look at the tables nothing."""
    report: dict[str, Any] = {}
    error = ""
    if source is not None:
        try:
            reading = source().read(now=now)
            report |= edges.replace_lineage(reading, source=name, accept_loss=accept_loss, now=now)
        except Exception as problem:
            logger.exception("Lineage was not taken in from %s", name)
            error = f"{type(problem).__name__}: {problem}"
    return report | asdict(missing_tables.check_tables(offboard_after=offboard_after, now=now)), error


def _claim_day(now: datetime) -> LineageDay | None:
    day, _ = LineageDay.objects.get_or_create(day=now.date(), defaults={"due_at": now})
    free = Q(leased_until=None) | Q(leased_until__lt=Now())
    waiting = LineageDay.objects.filter(free, pk=day.pk, ended_at=None, due_at__lte=now)
    if not waiting.update(leased_until=Now() + LEASE_DURATION, attempt=F("attempt") + 1):
        return None
    day.refresh_from_db()
    return day


def _extend_lease(day: LineageDay) -> None:
    LineageDay.objects.filter(pk=day.pk).update(leased_until=Now() + LEASE_DURATION)
