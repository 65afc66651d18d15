"""The units of a test: one for each copy and partition, or one for each copy as a whole; when each is due first."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from django.db.models import OuterRef, Subquery

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval, earlier
from lakehub.kernel.partitions import floor_to_bucket
from quality.domain.generation.definitions import runs_in
from quality.domain.parsed import parsed_or_blank
from quality.domain.scheduling.due_times import first_due_at
from quality.domain.scheduling.history import MAX_PARTITIONS, history_of, holes_before, max_gap, partitions_from
from quality.measuring.resources import resource_of
from quality.models import Lane, QualityTest, Unit
from quality.planning.retired_units import NOT_EXPECTED, begin_units_anew, drop_not_expected, drop_unanswerable
from quality.state.dataset_slas import production_calendar_or_none
from quality.state.first_partition import first_tested_at
from quality.state.populated_partitions import awaited_among, populated_partitions


def plan_units(test: QualityTest, *, now: datetime, anew: bool = False) -> None:
    """The units that are missing on the copies that are monitored. `anew`: also in between."""
    if test.version is None or not test.planned:
        return
    expression = parsed_or_blank(test.version.flattened)
    copies = test.dataset.copies.exclude(monitored_from=None)
    for copy in copies.select_related("dataset__feed__connection", "connection", "data_center"):
        if runs_in(expression, copy.data_center.name):
            plan_units_on_copy(test, copy, now=now, anew=anew)


def plan_units_on_copy(
    test: QualityTest,
    copy: DatasetCopy,
    *,
    now: datetime,
    anew: bool = False,
    history: Sequence[Interval] | None = None,
) -> None:
    """A unit for the whole, due at once; or one for each partition of the history and up to the one that is going on, each
    due when it must be whole. `history`: None for what is known to be tested or to hold rows."""
    assert test.version is not None
    assert copy.monitored_from is not None
    on = resource_of(parsed_or_blank(test.version.flattened), copy)
    drop_unanswerable(test, copy, now=now)
    Unit.objects.filter(test=test, copy=copy).exclude(resource=on).update(resource=on)
    if test.version.cadence is not None:
        whole = {"start": EVERYTHING.start, "end": EVERYTHING.end}
        _insert_units([Unit(test=test, copy=copy, **whole, due_at=now, resource=on)], now=now)
        return
    # A copy that is read elsewhere now may hold older partitions than those that have units.
    newest = None if anew or history is not None else _planned_until(copy, [test], now=now).get(test.pk)
    if newest is None:
        known = _known_history(copy, now=now) if history is None else history
        _insert_units(_units_of(test, copy, known, on, now=now), now=now)
        newest = _live_from(copy)
    _insert_units(_following_units(test, copy, newest, on, now=now), now=now)


def _known_history(copy: DatasetCopy, *, now: datetime) -> tuple[Interval, ...]:
    """What other tests of the copy test, where the calendar has not changed, and what is known to hold rows."""
    counted = Unit.objects.filter(copy=copy).exclude(end=EVERYTHING.end).exclude(NOT_EXPECTED)
    planned = counted.values_list("start", "end").distinct()
    full = populated_partitions(copy) or frozenset()
    tested = {Interval(start, end) for start, end in planned.order_by()}
    calendar = production_calendar_or_none(copy.dataset)
    known = history_of(
        dict.fromkeys(full, 1) or dict.fromkeys(tested, 1),
        grain=copy.dataset.partition_grain,
        zone=copy.dataset.zone,
        produced=calendar,
        now=now,
    )
    return known.partitions


def _live_from(copy: DatasetCopy) -> datetime:
    """From here on each partition is awaited: since it was onboarded."""
    assert copy.monitored_from is not None
    dataset = copy.dataset
    return max(copy.monitored_from, floor_to_bucket(dataset.onboarded_at, dataset.partition_grain, dataset.zone))


def _following_units(test: QualityTest, copy: DatasetCopy, begin: datetime, on: str, *, now: datetime) -> list[Unit]:
    """A unit for each partition from `begin` up to the one that is going on, or the next one that is produced at all.

    None before there is past enough for an answer; the first that has it is planned long before.
    """
    dataset, first = copy.dataset, first_tested_at(test, copy)
    partitions = partitions_from(
        max(begin, first),
        max(now, first),
        grain=dataset.partition_grain,
        zone=dataset.zone,
        produced=production_calendar_or_none(dataset),
    )
    return [_new_unit(test, copy, partition, on, now=now) for partition in partitions]


def _new_unit(test: QualityTest, copy: DatasetCopy, partition: Interval, on: str, *, now: datetime) -> Unit:
    assert test.version is not None
    due_at = first_due_at(partition, test.version.due_after)
    # History goes behind what is due now, so that a baseline starves nobody.
    lane = Lane.DUE if due_at > earlier(now, test.version.due_after) else Lane.LATE
    return Unit(test=test, copy=copy, start=partition.start, end=partition.end, due_at=due_at, lane=lane, resource=on)


def _planned_until(copy: DatasetCopy, tests: Iterable[QualityTest], *, now: datetime) -> dict[int, datetime]:
    """Until when the partitions of each test are planned on the copy; what was written ahead of time plans nothing before it."""
    planned = Unit.objects.filter(test=OuterRef("pk"), copy=copy, start__lt=now).exclude(end=EVERYTHING.end)
    newest = Subquery(planned.order_by("-start").values("end")[:1])
    tests_with_newest = QualityTest.objects.filter(pk__in={test.pk for test in tests}).annotate(newest=newest)
    return {pk: end for pk, end in tests_with_newest.values_list("pk", "newest") if end is not None}


def _insert_units(units: Sequence[Unit], *, now: datetime) -> None:
    """Those that are there stay as they are, but for those that a calendar had let go: they begin anew."""
    begin_units_anew(units, now=now)
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
            for following_unit in _following_units(unit.test, copy, unit.end, unit.resource, now=now)
        ],
        now=now,
    )


def replan_dataset(dataset: Dataset, *, now: datetime) -> None:
    """After the calendar changed: the units of what is expected now; those of what is not, and is not awaited either, go."""
    for copy in dataset.copies.select_related("dataset", "data_center"):
        _drop_unexpected_units(copy, now=now)
    for test in dataset.tests.filter(retired_at=None, version__cadence=None).select_related("version", "dataset"):
        plan_units(test, now=now, anew=True)


def _drop_unexpected_units(copy: DatasetCopy, *, now: datetime) -> None:
    calendar = production_calendar_or_none(copy.dataset)
    if calendar is None or populated_partitions(copy) is None:
        return
    planned = Unit.objects.filter(copy=copy, test__planned=True).exclude(end=EVERYTHING.end)
    ranges = (Interval(start, end) for start, end in planned.values_list("start", "end").distinct())
    unexpected = {partition for partition in ranges if not calendar.expects(partition)}
    drop_not_expected(copy, unexpected - awaited_among(copy, unexpected), now=now)


def plan_partitions(copy: DatasetCopy, partitions: Collection[Interval], *, now: datetime) -> None:
    """Units of partitions that hold rows, whatever was expected, and of the holes that they show."""
    missing = {*partitions, *_holes_shown_by(partitions, copy, now=now)}
    tests = copy.dataset.tests.filter(planned=True, retired_at=None, version__cadence=None)
    for test in tests.select_related("version", "dataset"):
        assert test.version is not None
        expression = parsed_or_blank(test.version.flattened)
        if runs_in(expression, copy.data_center.name):
            _insert_units(_units_of(test, copy, missing, resource_of(expression, copy), now=now), now=now)


def _holes_shown_by(partitions: Collection[Interval], copy: DatasetCopy, *, now: datetime) -> Iterator[Interval]:
    """The partitions before each that came late, back to the one before it that is tested or came too: they were awaited before it."""
    late = sorted(partition for partition in partitions if partition.start <= now)
    if not late:
        return
    assert copy.monitored_from is not None
    dataset, calendar = copy.dataset, production_calendar_or_none(copy.dataset)
    awaited_from = _live_from(copy)
    for partition, before in zip(late, _ends_before(late, copy), strict=True):
        holes = holes_before(
            partition,
            before or copy.monitored_from,
            grain=dataset.partition_grain,
            zone=dataset.zone,
            produced=calendar,
        )
        missing = list(islice(holes, MAX_PARTITIONS))
        # A wide gap in the past is no hole, as in the history that the baseline found; from onboarding on each is awaited.
        is_wide = len(missing) > max_gap(dataset.partition_grain)
        yield from (hole for hole in missing if hole.start >= awaited_from or not is_wide)


def _ends_before(late: Sequence[Interval], copy: DatasetCopy) -> Iterator[datetime | None]:
    """For each of these, which are in order, when the one before it ends that is tested or among them; None: there is none."""
    units = Unit.objects.filter(copy=copy).exclude(end=EVERYTHING.end)
    newest = units.filter(start__lt=late[0].start).order_by("-start").values_list("end", flat=True).first()
    between = units.filter(start__gte=late[0].start, start__lt=late[-1].start).values_list("start", "end").distinct()
    tested = deque(between.order_by("start"))
    for partition in late:
        while tested and tested[0][0] < partition.start:
            newest = tested.popleft()[1]
        yield newest
        newest = partition.end


def _units_of(
    test: QualityTest, copy: DatasetCopy, partitions: Iterable[Interval], on: str, *, now: datetime
) -> list[Unit]:
    """For each of these that the test can have an answer for."""
    first = first_tested_at(test, copy)
    return [_new_unit(test, copy, partition, on, now=now) for partition in partitions if partition.start >= first]
