"""Once a day, however often it is woken up: the newest lineage is read, and the tables of all datasets are looked at.

Two looks with a claim each, as they run in different processes: Spark's reads lineage where a job of it does that, and must never
wait for a source that is silent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Now

from lakehub.catalog.lineage import LineageSource, edges, missing_tables, posted
from lakehub.catalog.models import LineageDay, PostedRun
from lakehub.db.lease_renewal import keep_renewed
from lakehub.kernel.backoff import Backoff

logger = logging.getLogger(__name__)
LEASE_DURATION = timedelta(seconds=60)
MAX_ATTEMPTS = 6
TABLES = ""
"""The source of a day at which the tables were looked at."""
RETRY_BACKOFF = Backoff(base=timedelta(minutes=5), cap=timedelta(hours=4))


def run_daily_lineage(source: Callable[[], LineageSource], *, name: str, now: datetime) -> LineageDay | None:
    """Reads the lineage of the source called `name`. None: nothing is due, or another worker is at it."""
    return _run_claimed(lambda _: _take_in(source, name=name, accept_loss=False, now=now), source=name, now=now)


def run_daily_posted(*, now: datetime) -> LineageDay | None:
    """Forgets the jobs whose events were posted, and that have not run for long. None: nothing is due, or another worker is at it."""
    if not PostedRun.objects.exists():
        return None
    return _run_claimed(lambda _: posted.forget_old_runs(now=now), source=posted.POSTED_SOURCE, now=now)


def run_daily_tables(
    turn: missing_tables.SourceTurn, *, offboard_after: timedelta | None, now: datetime
) -> LineageDay | None:
    """Looks at the tables of all datasets, each in its `turn`. None: nothing is due, or another worker is at it.

    Where connections are out of reach or have to wait for their turn, the error names them, and their tables alone are looked at again.
    """

    def look(day: LineageDay) -> tuple[dict[str, Any], str]:
        report = missing_tables.check_tables(
            offboard_after=offboard_after,
            turn=turn,
            earlier=missing_tables.TableCheckReport(**day.report) if day.report else None,
            is_tried_again=day.attempt < MAX_ATTEMPTS,
            now=now,
        )
        return asdict(report), " ".join(f"{name}: {why}" for name, why in report.out_of_reach.items())

    return _run_claimed(look, source=TABLES, now=now)


def run_check(
    source: Callable[[], LineageSource] | None,
    *,
    name: str,
    offboard_after: timedelta | None,
    accept_loss: bool = False,
    now: datetime,
) -> tuple[dict[str, Any], str]:
    """Both looks now: what changed, and what went wrong with lineage, which costs the look at the tables nothing."""
    report, error = _take_in(source, name=name, accept_loss=accept_loss, now=now) if source is not None else ({}, "")
    forgotten, posted_error = posted.forget_old_runs(accept_loss=accept_loss, now=now)
    changed = {kind: [*report.get(kind, ()), *lines] for kind, lines in forgotten.items()}
    tables = asdict(missing_tables.check_tables(offboard_after=offboard_after, now=now))
    return changed | tables, " ".join(filter(None, (error, posted_error)))


def _take_in(
    source: Callable[[], LineageSource], *, name: str, accept_loss: bool, now: datetime
) -> tuple[dict[str, Any], str]:
    """What changed, and what went wrong."""
    try:
        reading = source().read(now=now)
        return dict(edges.replace_lineage(reading, source=name, accept_loss=accept_loss, now=now)), ""
    except Exception as problem:
        logger.exception("Lineage was not taken in from %s", name)
        return {}, f"{type(problem).__name__}: {problem}"


def _run_claimed(
    work: Callable[[LineageDay], tuple[dict[str, Any], str]], *, source: str, now: datetime
) -> LineageDay | None:
    """What went wrong is tried again, a few times."""
    day = _claim_day(source, now)
    if day is None:
        return None
    with keep_renewed(partial(_extend_lease, day), every=LEASE_DURATION / 4):
        report, error = work(day)
    failed = bool(error) and day.attempt < MAX_ATTEMPTS
    ended = {"due_at": now + RETRY_BACKOFF.delay(day.attempt - 1, 0.0)} if failed else {"ended_at": now}
    LineageDay.objects.filter(pk=day.pk).update(report=report, error=error, leased_until=None, **ended)
    day.refresh_from_db()
    return day


def _claim_day(source: str, now: datetime) -> LineageDay | None:
    day, _ = LineageDay.objects.get_or_create(day=now.date(), source=source, defaults={"due_at": now})
    free = Q(leased_until=None) | Q(leased_until__lt=Now())
    waiting = LineageDay.objects.filter(free, pk=day.pk, ended_at=None, due_at__lte=now)
    if not waiting.update(leased_until=Now() + LEASE_DURATION, attempt=F("attempt") + 1):
        return None
    day.refresh_from_db()
    return day


def _extend_lease(day: LineageDay) -> None:
    LineageDay.objects.filter(pk=day.pk).update(leased_until=Now() + LEASE_DURATION)
