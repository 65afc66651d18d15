"""Raw results are kept for a while; what they add up to by the hour stays. Rolled up from the first day on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, Sum

from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.pruning import prune
from quality.domain.verdicts import Reason
from quality.models import FinishedRun, Flip, Measurement, Result, ResultHour

_HOUR = timedelta(hours=1)
_LATE = timedelta(hours=2)
"""A result that takes longer than this to be stored after its data was read is not added up."""
DELETED_AT_ONCE = 5_000


def roll_up(*, now: datetime) -> int:
    """Adds up the hours that are over and were not yet, one after the other. Running it again changes nothing. The number of sums."""
    until = _floor(now - _LATE)
    newest = ResultHour.objects.aggregate(Max("hour"))["hour__max"]
    begin, added = newest + _HOUR if newest is not None else None, 0
    while (hour := _next_hour(begin, until)) is not None:
        added += _add_up(hour)
        begin = hour + _HOUR
    return added


def _next_hour(begin: datetime | None, until: datetime) -> datetime | None:
    """The first hour from `begin` on in which anything was read."""
    fresh = Result.objects.filter(read_at__lt=until)
    fresh = fresh if begin is None else fresh.filter(read_at__gte=begin)
    first: datetime | None = fresh.aggregate(Min("read_at"))["read_at__min"]
    return None if first is None else _floor(first)


def _add_up(hour: datetime) -> int:
    """One hour, all or nothing: what is held in memory is one row a unit, however long nobody added up."""
    sums = (
        Result.objects.filter(read_at__gte=hour, read_at__lt=hour + _HOUR)
        .values("unit_id")
        .annotate(
            passed=_counted(Outcome.PASS),
            failed=_counted(Outcome.FAIL),
            no_data=_counted(Outcome.NO_DATA),
            errors=_counted(Outcome.ERROR),
            lowest=Min("observed"),
            highest=Max("observed"),
            total=Sum("observed"),
            measured=Count("observed"),
        )
    )
    with transaction.atomic():
        rows = [ResultHour(hour=hour, **one) for one in sums.order_by("unit_id")]
        ResultHour.objects.bulk_create(rows, ignore_conflicts=True, batch_size=1000)
    return len(rows)


def forget(*, now: datetime, kept: timedelta) -> int:
    """Deletes the raw results older than `kept` that were added up, a few at a time. The number deleted."""
    newest = ResultHour.objects.aggregate(Max("hour"))["hour__max"]
    if newest is None:
        return 0
    return _delete(Result.objects.filter(read_at__lt=min(now - kept, newest + _HOUR)))


def forget_measurements(*, now: datetime, kept: timedelta) -> int:
    """Deletes what was measured so long ago that it is hardly used again. The number deleted."""
    return _delete(Measurement.objects.filter(read_at__lt=now - kept))


def _delete(old: QuerySet[Any, Any]) -> int:
    """A few at a time, by the index on `read_at`."""
    deleted = 0
    while keys := list(old.order_by("read_at").values_list("pk", flat=True)[:DELETED_AT_ONCE]):
        deleted += old.model._default_manager.filter(pk__in=keys).delete()[1].get(old.model._meta.label, 0)
    return deleted


def forget_flips(*, now: datetime, kept: timedelta) -> int:
    """Deletes changes of verdicts that incidents have taken in longer ago than `kept`, but for the newest of each unit.

    That a unit was FAIL, and that somebody said that it was a false alarm, stays as long as the unit: baselines look back
    for years, and leave out what was confirmed.
    """
    newer = Flip.objects.filter(unit=OuterRef("unit"), pk__gt=OuterRef("pk"))
    alike = newer.filter(becomes=OuterRef("becomes"), reason=OuterRef("reason"))
    remembered = Q(becomes=Verdict.FAIL) | Q(reason=Reason.FALSE_POSITIVE)
    gone = Q(Exists(newer)) & (~remembered | Q(Exists(alike)))
    return prune(Flip.objects.all(), age="claimed_at", before=now - kept, where=gone)


def forget_finished(*, now: datetime, kept: timedelta) -> int:
    """Deletes what pipelines told longer ago than `kept`. The number deleted."""
    return prune(FinishedRun.objects.all(), age="told_at", before=now - kept)


def _counted(outcome: Outcome) -> Count:
    return Count("pk", filter=Q(outcome=outcome))


def _floor(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)
