"""When the tasks of quality have something to do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min, QuerySet

from lakehub.processes.wakeups import Wakeup, earliest
from quality.models import BaselineAttempt, ChangePoll, GenerationStatus, Unit
from quality.planning import change_polling, touched_partitions


def _next_unit_at(_now: datetime) -> datetime | None:
    return _first(Unit.objects.all(), "due_at")


def _next_judgement_at(_now: datetime) -> datetime | None:
    return _first(Unit.objects.all(), "reevaluate_at")


def _next_change_at(now: datetime) -> datetime | None:
    """Of what could not be generated, or begun, and is tried again; and of commits that are gathered."""
    return earliest(
        touched_partitions.next_claim_at(now),
        _first(GenerationStatus.objects.all(), "retry_at"),
        _first(BaselineAttempt.objects.all(), "retry_at"),
    )


def _next_poll_at(now: datetime) -> datetime | None:
    polled = change_polling.polled_copies()
    if polled.filter(watch=None).exists():
        return now
    return _first(ChangePoll.objects.filter(copy__in=polled), "due_at")


def _first(rows: QuerySet[Any], field: str) -> datetime | None:
    first: datetime | None = rows.filter(**{f"{field}__isnull": False}).aggregate(at=Min(field))["at"]
    return first


WAKEUPS = (
    Wakeup("quality.tasks.run_due", timedelta(minutes=1), next_due=_next_unit_at),
    Wakeup("quality.tasks.claim_changes", timedelta(seconds=30), on_change=True, next_due=_next_change_at),
    Wakeup("quality.tasks.watch", timedelta(minutes=1), next_due=_next_poll_at, at_most_every=timedelta(seconds=5)),
    Wakeup("quality.tasks.judge_due", timedelta(minutes=1), next_due=_next_judgement_at),
    Wakeup("quality.tasks.keep_house", timedelta(hours=1)),
)
