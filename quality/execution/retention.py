"""Raw results are kept for a while; what they add up to by the hour stays. Rolled up from the first day on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, Sum

from lakehub.db.batch_delete import delete_old_rows
from lakehub.kernel.outcome import Outcome, Verdict
from quality.domain.verdicts.unit_verdict import VerdictReason
from quality.models import CachedMeasurement, ExternalRun, FailingRows, Flip, HourlyResults, Result

_HOUR = timedelta(hours=1)
_ROLLUP_DELAY = timedelta(hours=2)
"""A result that takes longer than this to be stored after its data was read is not added up."""
DELETE_BATCH = 5_000


def roll_up_results(*, now: datetime) -> int:
    """Adds up the hours that are over and were not yet, one after the other. Running it again changes nothing. The number of sums."""
    until = _hour_of(now - _ROLLUP_DELAY)
    newest = HourlyResults.objects.aggregate(Max("hour"))["hour__max"]
    begin, added = newest + _HOUR if newest is not None else None, 0
    while (hour := _next_hour(begin, until)) is not None:
        added += _roll_up_hour(hour)
        begin = hour + _HOUR
    return added


def _next_hour(begin: datetime | None, until: datetime) -> datetime | None:
    """The first hour from `begin` on in which anything was read."""
    fresh = Result.objects.filter(read_at__lt=until)
    fresh = fresh if begin is None else fresh.filter(read_at__gte=begin)
    first: datetime | None = fresh.aggregate(Min("read_at"))["read_at__min"]
    return None if first is None else _hour_of(first)


def _roll_up_hour(hour: datetime) -> int:
    """One hour, all or nothing: what is held in memory is one row a unit, however long nobody added up."""
    sums = (
        Result.objects.filter(read_at__gte=hour, read_at__lt=hour + _HOUR)
        .values("unit_id")
        .annotate(
            passed=_counted(Outcome.PASS),
            failed=_counted(Outcome.FAIL),
            no_data=_counted(Outcome.NO_DATA),
            errors=_counted(Outcome.ERROR),
            min_observed=Min("observed"),
            max_observed=Max("observed"),
            sum_observed=Sum("observed"),
            observed_count=Count("observed"),
        )
    )
    with transaction.atomic():
        rows = [HourlyResults(hour=hour, **unit_sums) for unit_sums in sums.order_by("unit_id")]
        HourlyResults.objects.bulk_create(rows, ignore_conflicts=True, batch_size=1000)
    return len(rows)


def delete_old_results(*, now: datetime, retention: timedelta) -> int:
    """Deletes the raw results older than `retention` that were added up, a few at a time. The number deleted."""
    newest = HourlyResults.objects.aggregate(Max("hour"))["hour__max"]
    if newest is None:
        return 0
    return _delete_in_batches(Result.objects.filter(read_at__lt=min(now - retention, newest + _HOUR)))


def delete_old_failing_rows(*, now: datetime, retention: timedelta) -> int:
    """Deletes the rows to look at of units that have not been failing for `retention`. The number deleted."""
    healed = FailingRows.objects.filter(read_at__lt=now - retention, unit__first_fail_at=None)
    return _delete_in_batches(healed)


def delete_old_measurements(*, now: datetime, retention: timedelta) -> int:
    """Deletes what was measured so long ago that it is hardly used again. The number deleted."""
    return _delete_in_batches(CachedMeasurement.objects.filter(read_at__lt=now - retention))


def _delete_in_batches(old: QuerySet[Any, Any]) -> int:
    """A few at a time, by the index on `read_at`."""
    deleted = 0
    while keys := list(old.order_by("read_at").values_list("pk", flat=True)[:DELETE_BATCH]):
        deleted += old.model._default_manager.filter(pk__in=keys).delete()[1].get(old.model._meta.label, 0)
    return deleted


def delete_old_flips(*, now: datetime, retention: timedelta) -> int:
    """Deletes changes of verdicts that incidents have taken in longer ago than `retention`, but for the newest of each unit.

    That a unit was FAIL, and that somebody said that it was a false alarm, stays as long as the unit: baselines look back
    for years, and leave out what was confirmed.
    """
    newer = Flip.objects.filter(unit=OuterRef("unit"), pk__gt=OuterRef("pk"))
    alike = newer.filter(becomes=OuterRef("becomes"), reason=OuterRef("reason"))
    remembered = Q(becomes=Verdict.FAIL) | Q(reason__in=(VerdictReason.FALSE_POSITIVE, VerdictReason.NOT_EXPECTED))
    gone = Q(Exists(newer)) & (~remembered | Q(Exists(alike)))
    return delete_old_rows(Flip.objects.all(), age="claimed_at", before=now - retention, where=gone)


def delete_old_external_runs(*, now: datetime, retention: timedelta) -> int:
    """Deletes what pipelines told longer ago than `retention`. The number deleted."""
    return delete_old_rows(ExternalRun.objects.all(), age="reported_at", before=now - retention)


def _counted(outcome: Outcome) -> Count:
    return Count("pk", filter=Q(outcome=outcome))


def _hour_of(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)
