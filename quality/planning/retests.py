"""What changed since it was tested: partitions that a commit touched, findings of ingestion, and time itself."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from ingestion.models import TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import Interval
from quality.domain.generation.definitions import runs_in
from quality.domain.language import THIS, Name, formula
from quality.domain.parsed import parsed
from quality.domain.verdicts.unit_verdict import touch
from quality.models import Lane, Unit
from quality.planning import units as units_of
from quality.planning.dependents import dependent_units, units_overlapping
from quality.state import first_partition
from quality.state.dataset_slas import slas_or_tier_defaults
from quality.state.unit_state import apply_facts, save_units, unit_facts

CLAIM_BATCH = 500
OVERDUE_AFTER = timedelta(minutes=10)
"""A retest that did not happen so long after it was due makes the verdict UNKNOWN."""


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
    copy = copies.get(pk=copy_id)
    units_of.plan_unexpected_partitions(copy, (Interval(start, end) for start, end in touched), now=now)
    retest_at = now + (slas_or_tier_defaults(copy.dataset).debounce if pause is None else pause)
    chosen = (_units_reading_copy(copy) & units_overlapping(touched), *dependent_units(copy, touched))
    units_by_pk = {unit.pk: unit for which in chosen for unit in _retestable_units(which)}
    units = [unit for unit in units_by_pk.values() if _is_in_scope(unit)]
    flips = []
    for unit in units:
        # The claim comes after the commit: whatever was read before may lack it.
        facts = touch(unit_facts(unit), committed_at=now, retest_due_at=retest_at + OVERDUE_AFTER)
        flips.append(apply_facts(unit, facts, now=now))
        if unit.due_at is None or unit.due_at > retest_at:
            # A rerun that waits for its backoff does not wait longer than the retest of any other.
            unit.due_at, unit.lane = retest_at, _lane(unit, recent, now)
        else:
            unit.lane = min(unit.lane, _lane(unit, recent, now))
    save_units(units, flips, also=("due_at", "lane"))
    return len(units)


def _lane(unit: Unit, recent: Lane, now: datetime) -> Lane:
    """History goes behind what is due now, as when it is planned."""
    assert unit.test.version is not None
    return recent if unit.end + 2 * unit.test.version.due_after > now else Lane.LATE


def _retestable_units(which: Q) -> QuerySet[Unit]:
    """Of those, the units of partitions that were run. One that waits for its first run will read the commit anyway;
    one whose first run is under way may not."""
    begun = Q(latest_at__isnull=False) | ~Q(leased_by="")
    partitioned = Unit.objects.filter(
        which, begun, test__planned=True, test__retired_at=None, test__version__cadence=None
    )
    live = partitioned.select_related("test__version", "copy__data_center", "copy__dataset")
    return live.select_for_update(of=("self",))


def _is_in_scope(unit: Unit) -> bool:
    """A version may name the only data center that it runs in, and have too little past for the first partitions."""
    assert unit.test.version is not None
    is_here = runs_in(parsed(unit.test.version.flattened), unit.copy.data_center.name)
    return is_here and unit.start >= first_partition.first_tested_at(unit.test, unit.copy)


def _units_reading_copy(copy: DatasetCopy) -> Q:
    """The units that read the copy: its own, and those of the other copies that compare themselves with it."""
    compared = formula(Name(THIS, copy.data_center.name))
    copies = list(copy.dataset.copies.values_list("pk", flat=True))
    return (Q(copy=copy) | Q(test__version__flattened__contains=compared)) & Q(copy__in=copies)
