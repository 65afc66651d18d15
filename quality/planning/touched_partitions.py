"""Makes the tests that read what a commit touched due once more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min, Q, QuerySet

from ingestion.models import TouchedPartition
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, partition_at
from quality.domain.language import UPSTREAM
from quality.domain.scheduling.due_times import OVERDUE_AFTER
from quality.domain.verdicts.unit_verdict import touch
from quality.models import CachedMeasurement, ChangePoll, Lane, QualityTest, Unit
from quality.planning import units as units_of
from quality.planning.dependents import copies_fed_by, units_reading
from quality.planning.retired_units import NOT_EXPECTED
from quality.state.dataset_slas import slas_or_tier_defaults
from quality.state.unit_state import apply_facts, save_units, unit_facts

CLAIM_BATCH, MAX_BATCHES = 500, 20
"""Of a copy, in one call: others have their turn then."""


def claim_touched_partitions(*, now: datetime) -> int:
    """Makes the tests of touched partitions due once more, after a pause that gathers further commits. The number of units.

    The commits of a copy that come within LAKEHUB_COMMIT_GATHER_S of its last claim are claimed together when that is over,
    however many more come: each unit is written once in that time.
    """
    unclaimed = TouchedPartition.objects.filter(claimed_at=None).order_by("pk")
    retested = 0
    for copy_id in [copy_id for copy_id, due_at in _claims_due(now) if due_at <= now]:
        with log_and_continue(f"Retesting what was touched of copy {copy_id}"):
            retested += _claim_touched_of_copy(copy_id, unclaimed, now=now)
    return retested


def next_claim_at(now: datetime) -> datetime | None:
    """When the first commits that are gathered now are claimed; None: none are. What may be claimed already, its change has told."""
    return min((due_at for _, due_at in _claims_due(now) if due_at > now), default=None)


def _claims_due(now: datetime) -> Iterator[tuple[int, datetime]]:
    """The copies with something to claim, and from when on."""
    gather = timedelta(seconds=settings.LAKEHUB_COMMIT_GATHER_S)
    unclaimed = TouchedPartition.objects.filter(claimed_at=None).order_by()
    copies = list(unclaimed.values("copy").annotate(first=Min("pk")).order_by("first").values_list("copy", flat=True))
    claimed = TouchedPartition.objects.filter(
        copy__in=copies, last_claimed_at__gt=now - gather, last_claimed_at__lte=now
    )
    latest = dict(claimed.values_list("copy").annotate(at=Max("last_claimed_at"))) if copies and gather else {}
    for copy in copies:
        yield copy, latest[copy] + gather if copy in latest else now


def _claim_touched_of_copy(copy_id: int, unclaimed: QuerySet[TouchedPartition], *, now: datetime) -> int:
    """A load may have touched thousands of partitions, which do not wait for the pause one batch after the other."""
    retested = 0
    for _ in range(MAX_BATCHES):
        claimed, units = _claim_batch(copy_id, unclaimed, now=now)
        retested += units
        if claimed < CLAIM_BATCH:
            break
    return retested


def _claim_batch(copy_id: int, unclaimed: QuerySet[TouchedPartition], *, now: datetime) -> tuple[int, int]:
    """How many touched partitions, and how many units."""
    with transaction.atomic():
        rows = unclaimed.filter(copy=copy_id).select_for_update(skip_locked=True)
        touched = {pk: (start, end) for pk, start, end in rows.values_list("pk", "start", "end")[:CLAIM_BATCH]}
        if not touched:
            return 0, 0
        TouchedPartition.objects.filter(pk__in=touched).update(claimed_at=now, last_claimed_at=now)
        return len(touched), retest(copy_id, touched.values(), now=now)


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
    copies = DatasetCopy.objects.select_related("dataset__feed__connection", "connection", "data_center")
    retestable, copy = _retestable_units(), copies.filter(pk=copy_id).first()
    if copy is None:
        return 0  # it was removed, or is being built: nothing tests it
    if missing := partitions_without_units(copy, (Interval(start, end) for start, end in touched)):
        units_of.plan_partitions(copy, missing, now=now)
    retest_at = now + (slas_or_tier_defaults(copy.dataset).debounce if pause is None else pause)
    for fed in copies_fed_by(copy):
        if missing := partitions_without_units(fed, _partitions_around(touched, fed.dataset)):
            units_of.plan_partitions(fed, missing, now=now)
    units, flips = units_reading(copy, touched, among=retestable), []
    for unit in units:
        assert unit.test.version is not None
        # The claim comes after the commit: whatever was read before may lack it.
        facts = touch(unit_facts(unit), committed_at=now, retest_due_at=retest_at + OVERDUE_AFTER)
        flips.append(apply_facts(unit, facts, now=now))
        # History goes behind what is due now, as when it is planned.
        lane = recent if now - unit.end < 2 * unit.test.version.due_after else Lane.LATE
        if unit.due_at is None or unit.due_at > retest_at:
            # A rerun that waits for its backoff does not wait longer than the retest of any other.
            unit.due_at, unit.lane = retest_at, lane
        else:
            unit.lane = min(unit.lane, lane)
    save_units(units, flips, also=("due_at", "lane"))
    return len(units)


def _partitions_around(touched: Collection[tuple[datetime, datetime]], dataset: Dataset) -> Iterator[Interval]:
    """The partitions of a dataset in which those of its upstream lie; a larger one is compared with none."""
    if dataset.partition_grain is Grain.NONE:
        return
    for start, end in touched:
        if start > EVERYTHING.start:
            partition = partition_at(start, dataset.partition_grain, dataset.zone)
            if end <= partition.end:
                yield partition


def partitions_without_units(copy: DatasetCopy, partitions: Iterable[Interval]) -> set[Interval]:
    """Those that are monitored and that no test of the copy has looked at. A commit may name a range that is no partition."""
    since, dataset = copy.monitored_from, copy.dataset
    if since is None or dataset.partition_grain is Grain.NONE:
        return set()
    monitored = {
        partition
        for partition in partitions
        if since < partition.end and partition == partition_at(partition.start, dataset.partition_grain, dataset.zone)
    }
    planned = Unit.objects.filter(copy=copy, start__in={partition.start for partition in monitored})
    ranges = planned.exclude(end=EVERYTHING.end).exclude(NOT_EXPECTED).values_list("start", "end").distinct()
    return monitored - {Interval(start, end) for start, end in ranges}


def retest_moved(copies: Collection[int], *, now: datetime) -> None:
    """The copies are read elsewhere: whatever reads them is unknown until it is tested anew, and their history begins anew."""
    ChangePoll.objects.filter(copy__in=copies).delete()
    CachedMeasurement.objects.filter(copy__in=copies).delete()
    # All are locked, so that none is claimed for the place before while this is written; those that wait are left.
    list(Unit.objects.filter(copy__in=copies).order_by("pk").select_for_update(of=("self",)).values_list("pk"))
    among = _begun_units()
    for copy in DatasetCopy.objects.select_related("dataset", "data_center").filter(pk__in=copies):
        units = units_reading(copy, [(EVERYTHING.start, EVERYTHING.end)], among=among)
        _begin_anew(units, now=now)
    DatasetCopy.objects.filter(pk__in=copies).update(monitored_from=None)


def retest_comparison(dataset_id: int, *, now: datetime) -> None:
    """The dataset is compared with another upstream: what says something about that is unknown until it is tested anew."""
    tests = QualityTest.objects.filter(dataset=dataset_id, retired_at=None, version__flattened__contains=UPSTREAM)
    compared = Unit.objects.filter(test__in=tests, copy__removed_at=None)
    list(compared.order_by("pk").select_for_update(of=("self",)).values_list("pk"))
    copies = DatasetCopy.objects.filter(dataset=dataset_id)
    CachedMeasurement.objects.filter(copy__in=copies).delete()
    _begin_anew(list(_begun_units().filter(test__in=tests).order_by("pk")), now=now)


def _begin_anew(units: list[Unit], *, now: datetime) -> None:
    """Overdue at once: no PASS of what was read before counts for what is read now."""
    flips = [apply_facts(u, touch(unit_facts(u), committed_at=now, retest_due_at=now), now=now) for u in units]
    for unit in units:
        unit.due_at, unit.lane = now, Lane.DUE
        unit.leased_by, unit.leased_until = "", None  # what is under way reads the place before
    save_units(units, flips, also=("due_at", "lane", "leased_by", "leased_until"))


def _begun_units() -> QuerySet[Unit]:
    begun = Q(latest_at__isnull=False) | ~Q(leased_by="")
    live = Unit.objects.filter(begun, test__planned=True, test__retired_at=None, copy__removed_at=None)
    return (
        live.exclude(NOT_EXPECTED)
        .select_related("test__version", "copy__data_center", "copy__dataset")
        .select_for_update(of=("self",))
    )


def _retestable_units() -> QuerySet[Unit]:
    """The units of partitions that were run, also where there was nothing to say. One that waits for its first run will
    read the commit anyway; one whose first run is under way may not."""
    begun = Q(latest_at__isnull=False) | Q(due_at=None) | ~Q(leased_by="")
    partitioned = Unit.objects.filter(
        begun, test__planned=True, test__retired_at=None, test__version__cadence=None, copy__removed_at=None
    )
    live = partitioned.select_related("test__version", "copy__data_center", "copy__dataset")
    return live.select_for_update(of=("self",))
