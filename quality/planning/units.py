"""The units of a test: one for each copy and partition, or one for each copy as a whole; when each is due first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from django.db.models import OuterRef, Subquery

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import partition_at, partitions_within
from quality.domain.generation.definitions import runs_in
from quality.domain.language import parse
from quality.domain.scheduling.due_times import first_due_at
from quality.domain.timeliness.production_calendar import ProductionCalendar
from quality.measuring.resources import resource_of
from quality.models import Lane, QualityTest, Unit
from quality.planning.retired_units import drop_unanswerable
from quality.state.dataset_slas import production_calendar_or_none, unexpected_partitions
from quality.state.first_partition import first_tested_at
from quality.state.populated_partitions import populated_partitions

_MAX_LOOKAHEAD = timedelta(days=400)
"""A calendar that expects nothing for longer is planned again when something is committed, or its tests change."""


def plan_units(test: QualityTest, *, now: datetime, anew: bool = False) -> None:
    """The units that are missing on the copies that are monitored. `anew`: also in between."""
    if test.version is None or not test.planned:
        return
    expression = parse(test.version.flattened)
    copies = test.dataset.copies.exclude(monitored_from=None)
    for copy in copies.select_related("dataset__feed__connection", "data_center"):
        if runs_in(expression, copy.data_center.name):
            plan_units_on_copy(test, copy, now=now, anew=anew)


def plan_units_on_copy(test: QualityTest, copy: DatasetCopy, *, now: datetime, anew: bool = False) -> None:
    """A unit for the whole, due at once; or one for each partition up to the one that is going on, each due when it must be whole."""
    assert test.version is not None
    assert copy.monitored_from is not None
    on = resource_of(parse(test.version.flattened), copy)
    drop_unanswerable(test, copy, now=now)
    Unit.objects.filter(test=test, copy=copy).exclude(resource=on).update(resource=on)
    if test.version.cadence is not None:
        whole = {"start": EVERYTHING.start, "end": EVERYTHING.end}
        _insert_units([Unit(test=test, copy=copy, **whole, due_at=now, resource=on)])
    else:
        newest = None if anew else _planned_until(copy, [test], now=now).get(test.pk)
        _insert_units(_missing_units(test, copy, newest, on, now=now))
        if production_calendar_or_none(copy.dataset) is not None:
            unexpected = unexpected_partitions(copy.dataset, populated_partitions(copy) or ())
            _insert_units(_unexpected_units(test, copy, unexpected, on, now=now))


def _missing_units(
    test: QualityTest, copy: DatasetCopy, begin: datetime | None, on: str, *, now: datetime
) -> list[Unit]:
    """A unit for each partition from `begin` up to the one that is going on, or the next one that is produced at all.

    None before there is past enough for an answer; the first that has it is planned long before.
    """
    dataset, first = copy.dataset, first_tested_at(test, copy)
    begin = first if begin is None else max(begin, first)
    end = partition_at(max(now, first), dataset.partition_grain, dataset.zone).end
    if begin >= end:
        return []
    partitions: Iterable[Interval] = partitions_within(Interval(begin, end), dataset.partition_grain, dataset.zone)
    if (calendar := production_calendar_or_none(dataset)) is not None:
        partitions = _expected_partitions(partitions, calendar, dataset, end)
    return [_new_unit(test, copy, partition, on, now=now) for partition in partitions]


def _expected_partitions(
    partitions: Iterable[Interval], calendar: ProductionCalendar, dataset: Dataset, end: datetime
) -> Iterator[Interval]:
    """Those that are expected. The next one is always planned: its first run plans what follows."""
    expected = [partition for partition in partitions if calendar.expects(partition)]
    yield from expected
    if not expected or expected[-1].end < end:
        ahead = partitions_within(Interval(end, end + _MAX_LOOKAHEAD), dataset.partition_grain, dataset.zone)
        yield from islice((partition for partition in ahead if calendar.expects(partition)), 1)


def _new_unit(test: QualityTest, copy: DatasetCopy, partition: Interval, on: str, *, now: datetime) -> Unit:
    assert test.version is not None
    due_at = first_due_at(partition, test.version.due_after)
    # History goes behind what is due now, so that a baseline starves nobody.
    lane = Lane.DUE if due_at > now - test.version.due_after else Lane.LATE
    return Unit(test=test, copy=copy, start=partition.start, end=partition.end, due_at=due_at, lane=lane, resource=on)


def _planned_until(copy: DatasetCopy, tests: Iterable[QualityTest], *, now: datetime) -> dict[int, datetime]:
    """Until when the partitions of each test are planned on the copy; what was written ahead of time plans nothing before it."""
    planned = Unit.objects.filter(test=OuterRef("pk"), copy=copy, start__lt=now).exclude(end=EVERYTHING.end)
    newest = Subquery(planned.order_by("-start").values("end")[:1])
    tests_with_newest = QualityTest.objects.filter(pk__in={test.pk for test in tests}).annotate(newest=newest)
    return {pk: end for pk, end in tests_with_newest.values_list("pk", "newest") if end is not None}


def _insert_units(units: Iterable[Unit]) -> None:
    Unit.objects.bulk_create(units, ignore_conflicts=True, batch_size=500)


def plan_following_units(copy: DatasetCopy, run: Sequence[Unit], *, now: datetime) -> None:
    """After the newest partition of a test was run first: the ones that follow it, up to the one that is going on.

    `run`: units of the copy that have just been run for the first time.
    """
    over = [unit for unit in run if unit.end < now and unit.test.planned]
    newest = _planned_until(copy, [unit.test for unit in over], now=now) if over else {}
    last = [unit for unit in over if unit.end == newest[unit.test_id]]
    _insert_units(
        [
            following_unit
            for unit in last
            for following_unit in _missing_units(unit.test, copy, unit.end, unit.resource, now=now)
        ]
    )


def replan_dataset(dataset: Dataset, *, now: datetime) -> None:
    """After the calendar changed: the units of what is expected now; of what is not, those go that were not run and hold no rows."""
    for copy in dataset.copies.select_related("dataset", "data_center"):
        _delete_unexpected_units(copy)
    for test in dataset.tests.filter(retired_at=None, version__cadence=None).select_related("version", "dataset"):
        plan_units(test, now=now, anew=True)


def _delete_unexpected_units(copy: DatasetCopy) -> None:
    calendar, full = production_calendar_or_none(copy.dataset), populated_partitions(copy)
    if calendar is None or full is None:
        return
    waiting = Unit.objects.filter(copy=copy, latest_at=None, leased_by="").exclude(end=EVERYTHING.end)
    for start, end in waiting.values_list("start", "end").distinct():
        partition = Interval(start, end)
        if partition not in full and not calendar.expects(partition):
            waiting.filter(start=start, end=end).delete()


def plan_unexpected_partitions(copy: DatasetCopy, unexpected: Collection[Interval], *, now: datetime) -> None:
    """Units of partitions that are not expected, but hold rows: what is there is tested."""
    if copy.monitored_from is None or not unexpected:
        return
    tests = copy.dataset.tests.filter(planned=True, retired_at=None, version__cadence=None)
    for test in tests.select_related("version", "dataset"):
        assert test.version is not None
        expression = parse(test.version.flattened)
        if runs_in(expression, copy.data_center.name):
            _insert_units(_unexpected_units(test, copy, unexpected, resource_of(expression, copy), now=now))


def _unexpected_units(
    test: QualityTest, copy: DatasetCopy, unexpected: Iterable[Interval], on: str, *, now: datetime
) -> list[Unit]:
    """For each of these that the test can have an answer for."""
    first = first_tested_at(test, copy)
    return [_new_unit(test, copy, partition, on, now=now) for partition in unexpected if partition.start >= first]
