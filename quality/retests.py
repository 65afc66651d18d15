"""What changed since it was tested: partitions that a commit touched, findings of ingestion, and time itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from ingestion.models import TouchedPartition
from lakehub.catalog.models import DatasetCopy
from quality.described import slas
from quality.domain.expression import THIS, Name, formula
from quality.domain.verdicts import touch
from quality.facts import FIELDS, JUDGED, facts_of, settle
from quality.models import Lane, Unit

CLAIMED_AT_ONCE = 500
OVERDUE_AFTER = timedelta(minutes=10)
"""A retest that did not happen so long after it was due makes the verdict UNKNOWN."""


def claim_touched(*, now: datetime) -> int:
    """Makes the tests of touched partitions due once more, after a pause that gathers further commits. The number of units."""
    with transaction.atomic():
        unclaimed = TouchedPartition.objects.filter(claimed_at=None).order_by("pk")
        rows = list(
            unclaimed.select_for_update(skip_locked=True).values_list("pk", "copy_id", "start", "end")[:CLAIMED_AT_ONCE]
        )
        TouchedPartition.objects.filter(pk__in=[row[0] for row in rows]).update(claimed_at=now)
        ranges = defaultdict(list)
        for _, copy_id, start, end in rows:
            ranges[copy_id].append((start, end))
        return sum(_retest(copy_id, touched, now=now) for copy_id, touched in ranges.items())


def _retest(copy_id: int, touched: Sequence[tuple[datetime, datetime]], *, now: datetime) -> int:
    """Partitions that were not due yet are tested when they are; tests of the whole run on their cadence anyway."""
    copy = DatasetCopy.objects.select_related("dataset", "data_center").get(pk=copy_id)
    retest_at = now + slas(copy.dataset).debounce
    # One that waits for its first run will read the commit; one whose first run is under way may not.
    begun = Q(latest_at__isnull=False) | ~Q(leased_by="")
    tested = _reading(copy).filter(_meeting(touched), begun, test__retired_at=None)
    partitioned = tested.filter(test__version__cadence=None).exclude(test__check_name="finding")
    units = list(partitioned.select_related("test__version").select_for_update(of=("self",)))
    for unit in units:
        # The claim comes after the commit: whatever was read before may lack it.
        settle(unit, touch(facts_of(unit), committed_at=now, retest_due_at=retest_at + OVERDUE_AFTER), now=now)
        if unit.due_at is None or unit.due_at > retest_at:
            # A rerun that waits for its backoff does not wait longer than the retest of any other.
            unit.due_at, unit.lane = retest_at, Lane.LATE
        unit.save(update_fields=[*FIELDS, *JUDGED, "due_at", "lane"])
    return len(units)


def _reading(copy: DatasetCopy) -> QuerySet[Unit]:
    """The units that read the copy: its own, and those of the other copies that compare themselves with it."""
    compared = formula(Name(THIS, copy.data_center.name))
    copies = list(copy.dataset.copies.values_list("pk", flat=True))
    return Unit.objects.filter(Q(copy=copy) | Q(test__version__flattened__contains=compared), copy__in=copies)


def _meeting(ranges: Sequence[tuple[datetime, datetime]]) -> Q:
    meets = Q(pk__in=[])
    for start, end in sorted(set(ranges)):
        meets |= Q(start__lt=end, end__gt=start)
    return meets


def judge_due(*, now: datetime, limit: int = 500) -> int:
    """Judges again the units whose verdict time alone may have changed. The number judged."""
    with transaction.atomic():
        waiting = list(Unit.objects.filter(judge_at__lte=now).order_by("judge_at").values_list("pk", flat=True)[:limit])
        rows = Unit.objects.filter(pk__in=waiting).select_related("test__version")
        units = list(rows.select_for_update(of=("self",), skip_locked=True)) if waiting else []
        for unit in units:
            settle(unit, facts_of(unit), now=now)
            unit.save(update_fields=[*FIELDS, *JUDGED])
    return len(units)
