"""The units of a test: one for each copy and partition, or one for each copy as a whole; when each is due first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max, Q

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.calendar import partition_at, partitions_within
from lakehub.kernel.interval import EVERYTHING, Interval
from quality.domain.definitions import runs_in
from quality.domain.expression import parse
from quality.domain.verdicts import Waiver, lift_waiver, waive
from quality.facts import FIELDS, JUDGED, facts_of, settle
from quality.models import Lane, Test, Unit


def plan(test: Test, *, now: datetime) -> None:
    """The units that are missing on the copies that are monitored. Findings bring their own."""
    if test.version is None or test.check_name == "finding":
        return
    expression = parse(test.version.flattened)
    for copy in test.dataset.copies.exclude(monitored_from=None).select_related("data_center"):
        if runs_in(expression, copy.data_center.name):
            plan_on(test, copy, now=now)


def plan_on(test: Test, copy: DatasetCopy, *, now: datetime) -> None:
    """A unit for the whole, due at once; or one for each partition up to the one that is going on, each due when it must be whole."""
    assert test.version is not None
    assert copy.monitored_from is not None
    if test.version.cadence is not None:
        _create([Unit(test=test, copy=copy, start=EVERYTHING.start, end=EVERYTHING.end, due_at=now)])
        return
    dataset = test.dataset
    begin = _planned_until(test, copy) or copy.monitored_from
    end = partition_at(now, dataset.partition_grain, dataset.zone).end
    if begin >= end:
        return
    partitions = partitions_within(Interval(begin, end), dataset.partition_grain, dataset.zone)
    _create(_unit(test, copy, partition, now) for partition in partitions)


def _unit(test: Test, copy: DatasetCopy, partition: Interval, now: datetime) -> Unit:
    assert test.version is not None
    due_at = partition.end + test.version.due_after
    # History goes behind what is due now, so that a baseline starves nobody.
    lane = Lane.DUE if due_at > now - test.version.due_after else Lane.LATE
    return Unit(test=test, copy=copy, start=partition.start, end=partition.end, due_at=due_at, lane=lane)


def _planned_until(test: Test, copy: DatasetCopy) -> datetime | None:
    newest: datetime | None = (
        Unit.objects.filter(test=test, copy=copy).exclude(end=EVERYTHING.end).aggregate(Max("end"))["end__max"]
    )
    return newest


def _create(units: Iterable[Unit]) -> None:
    Unit.objects.bulk_create(units, ignore_conflicts=True, batch_size=500)


def plan_next(unit: Unit, *, now: datetime) -> None:
    """After the newest partition was run first: the ones that follow it, up to the one that is going on."""
    if unit.test.check_name == "finding":
        return
    if unit.end < now and not Unit.objects.filter(test=unit.test, copy=unit.copy, start__gte=unit.end).exists():
        plan_on(unit.test, unit.copy, now=now)


def take_new_version(test: Test, *, now: datetime) -> None:
    """What was measured under another version is measured again; waivers of it end."""
    waived = list(
        Unit.objects.filter(test=test)
        .exclude(waiver="")
        .select_for_update(of=("self",))
        .select_related("test__version")
    )
    for unit in waived:
        settle(unit, lift_waiver(facts_of(unit)), now=now)
        unit.save(update_fields=[*FIELDS, *JUDGED])
    running = ~Q(leased_by="")  # under the version that was: its result will not do
    tested = Unit.objects.filter(Q(latest_at__isnull=False) | running, test=test)
    tested.filter(Q(due_at=None) | Q(due_at__gt=now) | running).update(due_at=now, lane=Lane.LATE)


def stop(test: Test, *, now: datetime) -> None:
    """The units of a retired test are run no more; what failed is waived, so that its incident ends with the test."""
    Unit.objects.filter(test=test).update(due_at=None, judge_at=None)
    failing = Unit.objects.filter(test=test, first_fail_at__isnull=False, waiver="")
    for unit in failing.select_for_update(of=("self",)).select_related("test__version"):
        settle(unit, waive(facts_of(unit), Waiver.FALSE_POSITIVE, at=now), now=now)
        unit.save(update_fields=[*FIELDS, *JUDGED])
