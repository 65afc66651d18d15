"""The units of a test: one for each copy and partition, or one for each copy as a whole; when each is due first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.calendar import Grain, partition_at, partitions_within
from lakehub.kernel.interval import BEGINNING, EVERYTHING, Interval
from quality.described import produced
from quality.domain.definitions import runs_in
from quality.domain.expression import parse
from quality.domain.looking_back import first_answer, looks_back
from quality.domain.production import Production
from quality.domain.tiers import BadOverride
from quality.domain.verdicts import Waiver, lift_waiver, waive
from quality.facts import facts_of, keep, settle
from quality.held import held
from quality.measuring import understood
from quality.models import Lane, Test, TestVersion, Unit
from quality.uses import uses

_FURTHEST = timedelta(days=400)
"""A calendar that expects nothing for longer is planned again when something is committed, or its tests change."""


def plan(test: Test, *, now: datetime, anew: bool = False) -> None:
    """The units that are missing on the copies that are monitored. Findings bring their own. `anew`: also in between."""
    if test.version is None or test.check_name == "finding":
        return
    expression = parse(test.version.flattened)
    copies = test.dataset.copies.exclude(monitored_from=None)
    for copy in copies.select_related("dataset__feed__connection", "data_center"):
        if runs_in(expression, copy.data_center.name):
            plan_on(test, copy, now=now, anew=anew)


def plan_on(test: Test, copy: DatasetCopy, *, now: datetime, anew: bool = False) -> None:
    """A unit for the whole, due at once; or one for each partition up to the one that is going on, each due when it must be whole."""
    assert test.version is not None
    assert copy.monitored_from is not None
    on = uses(parse(test.version.flattened), copy)
    _leave_out(test, copy, now=now)
    Unit.objects.filter(test=test, copy=copy).exclude(uses=on).update(uses=on)
    if test.version.cadence is not None:
        whole = {"start": EVERYTHING.start, "end": EVERYTHING.end}
        _create([Unit(test=test, copy=copy, **whole, due_at=now, uses=on)])
    else:
        newest = None if anew else _newest(copy, [test], now=now).get(test.pk)
        _create(_missing(test, copy, newest, on, now=now))
        _create(_surprises(test, copy, held(copy) or (), on, now=now) if _calendar(copy.dataset) else ())


def _missing(test: Test, copy: DatasetCopy, begin: datetime | None, on: str, *, now: datetime) -> list[Unit]:
    """A unit for each partition from `begin` up to the one that is going on, or the next one that is produced at all.

    None before there is past enough for an answer; the first that has it is planned long before.
    """
    dataset, first = copy.dataset, first_tested(test, copy)
    begin = first if begin is None else max(begin, first)
    end = partition_at(max(now, first), dataset.partition_grain, dataset.zone).end
    if begin >= end:
        return []
    partitions: Iterable[Interval] = partitions_within(Interval(begin, end), dataset.partition_grain, dataset.zone)
    if (calendar := _calendar(dataset)) is not None:
        partitions = _produced(partitions, calendar, dataset, end)
    return [_unit(test, copy, partition, on, now=now) for partition in partitions]


def first_tested(test: Test, copy: DatasetCopy) -> datetime:
    """Where the first partition of the copy begins that the test can have an answer for."""
    assert test.version is not None
    since, dataset = copy.monitored_from or BEGINNING, copy.dataset
    if test.version.cadence is not None:
        return since
    return first_tested_of(test.version.flattened, since, dataset.partition_grain, dataset.partition_tz)


@lru_cache(maxsize=8192)
def first_tested_of(flattened: str, since: datetime, grain: Grain, tz: str) -> datetime:
    """The same for a test of partitions by its expression, on what is monitored from `since` on."""
    if since == BEGINNING:
        return since
    return first_answer(since, looks_back(understood(flattened), grain), grain, ZoneInfo(tz))


def looked_back(version: TestVersion, dataset: Dataset) -> bool:
    return bool(looks_back(understood(version.flattened), dataset.partition_grain))


def _in_front(test: Test, copies: Iterable[DatasetCopy]) -> Q:
    """The units of partitions that another version of the test had, and this one has no answer for."""
    found = Q(pk__in=[])
    for copy in copies:
        if (first := first_tested(test, copy)) > (copy.monitored_from or BEGINNING):
            found |= Q(copy=copy, start__lt=first) & ~Q(end=EVERYTHING.end)
    return found


def _leave_out(test: Test, copy: DatasetCopy, *, now: datetime) -> None:
    """Those in front go where they never had an answer. What had one stays and counts no more: no incident stays open."""
    front = Unit.objects.filter(_in_front(test, [copy]), test=test)
    front.filter(last_pass_at=None, first_fail_at=None).delete()
    answered = list(front.filter(waiver="").values_list("pk", flat=True))
    if answered:
        with transaction.atomic():
            stopped = Unit.objects.filter(pk__in=answered)
            stopped.update(leased_by="", leased_until=None)  # what is under way will not do
            _stop(stopped, now=now, which=Q())


def _calendar(dataset: Dataset) -> Production | None:
    """What cannot be read is reported where the tests are made; until it is mended every partition is expected."""
    try:
        return produced(dataset)
    except BadOverride:
        return None


def _produced(
    partitions: Iterable[Interval], calendar: Production, dataset: Dataset, end: datetime
) -> Iterator[Interval]:
    """Those that are expected. The next one is always planned: its first run plans what follows."""
    expected = [one for one in partitions if calendar.expects(one)]
    yield from expected
    if not expected or expected[-1].end < end:
        ahead = partitions_within(Interval(end, end + _FURTHEST), dataset.partition_grain, dataset.zone)
        yield from islice((one for one in ahead if calendar.expects(one)), 1)


def _unit(test: Test, copy: DatasetCopy, partition: Interval, on: str, *, now: datetime) -> Unit:
    assert test.version is not None
    due_at = partition.end + test.version.due_after
    # History goes behind what is due now, so that a baseline starves nobody.
    lane = Lane.DUE if due_at > now - test.version.due_after else Lane.LATE
    return Unit(test=test, copy=copy, start=partition.start, end=partition.end, due_at=due_at, lane=lane, uses=on)


def _newest(copy: DatasetCopy, tests: Iterable[Test], *, now: datetime) -> dict[int, datetime]:
    """Until when the partitions of each test are planned on the copy; what was written ahead of time plans nothing before it."""
    planned = Unit.objects.filter(test=OuterRef("pk"), copy=copy, start__lt=now).exclude(end=EVERYTHING.end)
    newest = Subquery(planned.order_by("-start").values("end")[:1])
    found = Test.objects.filter(pk__in={test.pk for test in tests}).annotate(newest=newest)
    return {pk: end for pk, end in found.values_list("pk", "newest") if end is not None}


def _create(units: Iterable[Unit]) -> None:
    Unit.objects.bulk_create(units, ignore_conflicts=True, batch_size=500)


def plan_next(copy: DatasetCopy, run: Sequence[Unit], *, now: datetime) -> None:
    """After the newest partition of a test was run first: the ones that follow it, up to the one that is going on.

    `run`: units of the copy that have just been run for the first time.
    """
    over = [unit for unit in run if unit.end < now and unit.test.check_name != "finding"]
    newest = _newest(copy, [unit.test for unit in over], now=now) if over else {}
    last = [unit for unit in over if unit.end == newest[unit.test_id]]
    _create([one for unit in last for one in _missing(unit.test, copy, unit.end, unit.uses, now=now)])


def replan(dataset: Dataset, *, now: datetime) -> None:
    """After the calendar changed: the units of what is expected now; of what is not, those go that were not run and hold no rows."""
    for copy in dataset.copies.select_related("dataset", "data_center"):
        _drop_unexpected(copy)
    for test in dataset.tests.filter(retired_at=None, version__cadence=None).select_related("version", "dataset"):
        plan(test, now=now, anew=True)


def _drop_unexpected(copy: DatasetCopy) -> None:
    calendar, full = _calendar(copy.dataset), held(copy)
    if calendar is None or full is None:
        return
    waiting = Unit.objects.filter(copy=copy, latest_at=None, leased_by="").exclude(end=EVERYTHING.end)
    for start, end in waiting.values_list("start", "end").distinct():
        partition = Interval(start, end)
        if partition not in full and not calendar.expects(partition):
            waiting.filter(start=start, end=end).delete()


def plan_unexpected(copy: DatasetCopy, written: Iterable[Interval], *, now: datetime) -> None:
    """Units of partitions that are not expected, but hold rows: what is there is tested."""
    calendar, full = _calendar(copy.dataset), set(written)
    if calendar is None or copy.monitored_from is None or all(calendar.expects(span) for span in full):
        return
    tests = copy.dataset.tests.filter(retired_at=None, version__cadence=None)
    for test in tests.exclude(check_name="finding").select_related("version", "dataset"):
        assert test.version is not None
        expression = parse(test.version.flattened)
        if runs_in(expression, copy.data_center.name):
            _create(_surprises(test, copy, full, uses(expression, copy), now=now))


def _surprises(test: Test, copy: DatasetCopy, written: Iterable[Interval], on: str, *, now: datetime) -> Iterator[Unit]:
    """For each of these that the calendar does not expect."""
    calendar, first = _calendar(copy.dataset), first_tested(test, copy)
    for span in written:
        if calendar is not None and span.start >= first and not calendar.expects(span):
            yield _unit(test, copy, span, on, now=now)


def take_new_version(test: Test, *, now: datetime) -> None:
    """What was measured under another version is measured again; waivers of it end."""
    front = _in_front(test, test.dataset.copies.select_related("dataset"))
    counted = Unit.objects.filter(test=test).exclude(front)
    waived = counted.exclude(waiver="").order_by("pk")
    units = list(waived.select_for_update(of=("self",)).select_related("test__version"))
    keep(units, [settle(unit, lift_waiver(facts_of(unit)), now=now) for unit in units])
    running = ~Q(leased_by="")  # under the version that was: its result will not do
    tested = counted.filter(Q(latest_at__isnull=False) | running)
    tested.filter(Q(due_at=None) | Q(due_at__gt=now) | running).update(due_at=now, lane=Lane.LATE)
    _stop(Unit.objects.filter(test=test, copy__in=_left(test)), now=now)


def _left(test: Test) -> list[int]:
    """The copies that the new version has nothing to say about."""
    assert test.version is not None
    expression = parse(test.version.flattened)
    copies = test.dataset.copies.values_list("pk", "data_center__name")
    return [copy for copy, center in copies if not runs_in(expression, center)]


def stop(test: Test, *, now: datetime) -> None:
    """The units of a retired test are run no more."""
    _stop(Unit.objects.filter(test=test), now=now)


_FAILING = Q(first_fail_at__isnull=False)


def _stop(stopped: QuerySet[Unit], *, now: datetime, which: Q = _FAILING) -> None:
    """What failed (or `which`) is waived, so that its incident ends with the test."""
    stopped.update(due_at=None, judge_at=None)
    waived = stopped.filter(which, waiver="").order_by("pk")
    units = list(waived.select_for_update(of=("self",)).select_related("test__version"))
    keep(units, [settle(unit, waive(facts_of(unit), Waiver.FALSE_POSITIVE, at=now), now=now) for unit in units])
