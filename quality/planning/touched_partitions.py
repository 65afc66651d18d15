"""Makes the tests that read what a commit touched due once more."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from ingestion.models import TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import Interval
from quality.domain.scheduling.due_times import OVERDUE_AFTER
from quality.domain.verdicts.unit_verdict import touch
from quality.models import Lane, Unit
from quality.planning import units as units_of
from quality.planning.dependents import units_reading
from quality.state.dataset_slas import slas_or_tier_defaults, unexpected_partitions
from quality.state.unit_state import apply_facts, save_units, unit_facts

CLAIM_BATCH = 500


def claim_touched_partitions(*, now: datetime) -> int:
    """Makes the tests of touched partitions due once more, after a pause that gathers further commits. The number of units."""
    unclaimed = TouchedPartition.objects.filter(claimed_at=None).order_by("pk")
    retested = 0
    for copy_id in dict.fromkeys(unclaimed.values_list("copy_id", flat=True)):
        with log_and_continue(f"Retesting what was touched of copy {copy_id}"):
            retested += _claim_touched_of_copy(copy_id, unclaimed, now=now)
    return retested


def _claim_touched_of_copy(copy_id: int, unclaimed: QuerySet[TouchedPartition], *, now: datetime) -> int:
    with transaction.atomic():
        rows = unclaimed.filter(copy=copy_id).select_for_update(skip_locked=True)
        touched = {pk: (start, end) for pk, start, end in rows.values_list("pk", "start", "end")[:CLAIM_BATCH]}
        if not touched:
            return 0
        TouchedPartition.objects.filter(pk__in=touched).update(claimed_at=now)
        return retest(copy_id, touched.values(), now=now)


def retest(
    copy_id: int,
    touched: Collection[tuple[datetime, datetime]],
    *,
    now: datetime,
    pause: timedelta | None = None,
    recent: Lane = Lane.LATE,
) -> int:
    """Makes the tests that read these ranges of the copy due once more. The number of units.

    Partitions that were not due yet are tested when they are; tests of the whole run on their cadence anyway.
    `pause`: None debounces as the tier says. `recent`: the lane of partitions that are hardly over; the others are late.
    """
    copies = DatasetCopy.objects.select_related("dataset__feed__connection", "data_center")
    retestable, copy = _retestable_units(), copies.get(pk=copy_id)
    if unexpected := unexpected_partitions(copy.dataset, (Interval(start, end) for start, end in touched)):
        units_of.plan_unexpected_partitions(copy, unexpected, now=now)
    retest_at = now + (slas_or_tier_defaults(copy.dataset).debounce if pause is None else pause)
    units, flips = units_reading(copy, touched, among=retestable), []
    for unit in units:
        assert unit.test.version is not None
        # The claim comes after the commit: whatever was read before may lack it.
        facts = touch(unit_facts(unit), committed_at=now, retest_due_at=retest_at + OVERDUE_AFTER)
        flips.append(apply_facts(unit, facts, now=now))
        # History goes behind what is due now, as when it is planned.
        lane = recent if unit.end + 2 * unit.test.version.due_after > now else Lane.LATE
        if unit.due_at is None or unit.due_at > retest_at:
            # A rerun that waits for its backoff does not wait longer than the retest of any other.
            unit.due_at, unit.lane = retest_at, lane
        else:
            unit.lane = min(unit.lane, lane)
    save_units(units, flips, also=("due_at", "lane"))
    return len(units)


def _retestable_units() -> QuerySet[Unit]:
    """The units of partitions that were run. One that waits for its first run will read the commit anyway;
    one whose first run is under way may not."""
    begun = Q(latest_at__isnull=False) | ~Q(leased_by="")
    partitioned = Unit.objects.filter(begun, test__planned=True, test__retired_at=None, test__version__cadence=None)
    live = partitioned.select_related("test__version", "copy__data_center", "copy__dataset")
    return live.select_for_update(of=("self",))
