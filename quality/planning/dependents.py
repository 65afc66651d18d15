"""The units whose answer a commit to a table may change: of its own partitions, of later ones and of other datasets."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from functools import lru_cache, reduce
from operator import or_
from typing import TypeAlias

from django.db.models import Q, QuerySet

from lakehub.catalog.models import Dataset, DatasetCopy, FeedKind, LineageEdge
from lakehub.kernel.interval import BEGINNING, EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, partitions_within, shifted_partition
from quality.cross_source.methods import TWO_SIDED_KINDS
from quality.domain.generation.definitions import runs_in
from quality.domain.language import THIS, UPSTREAM, Name, asks_of, formula, function_calls
from quality.domain.language.measures import Ask, Reach
from quality.domain.parsed import first_tested_for, parsed_or_blank
from quality.models import QualityTest, TableReference, Unit

TouchedRanges: TypeAlias = Collection[tuple[datetime, datetime]]

MAX_SHIFTS = 31
"""A commit retests the partitions that look back to it through so many shifts of a test, the nearest. What a series such as
`deviation` looks at does not count: one late partition moves its baseline by little."""
_ALL_UNITS = Q(pk__isnull=False)
"""An empty Q would be left out by `|`."""


def units_reading(copy: DatasetCopy, touched: TouchedRanges, *, among: QuerySet[Unit]) -> list[Unit]:
    """Those `among` the units that read these ranges of the copy, and whose test runs there."""
    conditions = (_units_reading_copy(copy) & units_overlapping(touched), *dependent_units(copy, touched))
    units_by_pk = {unit.pk: unit for condition in conditions for unit in among.filter(condition)}
    return [unit for unit in units_by_pk.values() if _is_in_scope(unit)]


def _units_reading_copy(copy: DatasetCopy) -> Q:
    """The units that read the copy: its own, and those of the other copies that compare themselves with it."""
    compared = formula(Name(THIS, copy.data_center.name))
    copies = list(copy.dataset.copies.values_list("pk", flat=True))
    return (Q(copy=copy) | Q(test__version__flattened__contains=compared)) & Q(copy__in=copies)


def _is_in_scope(unit: Unit) -> bool:
    """A version may name the only data center that it runs in, and have too little past for the first partitions."""
    assert unit.test.version is not None
    flattened, copy, dataset = unit.test.version.flattened, unit.copy, unit.copy.dataset
    since = copy.monitored_from or BEGINNING
    if not runs_in(parsed_or_blank(flattened), copy.data_center.name):
        return False
    first = first_tested_for(flattened, since, dataset.partition_grain, dataset.partition_tz)
    return unit.end == EVERYTHING.end or unit.start >= first


def dependent_units(copy: DatasetCopy, touched: TouchedRanges) -> Iterator[Q]:
    """For each test that reads the copy by another name than `this` of the same partition, its units that do."""
    read = TableReference.objects.filter(name=copy.dataset.name)
    from_connection = Q(test__dataset__ingested=True, test__dataset__feed__kind=FeedKind.CONNECTION)
    fed = TableReference.objects.filter(
        ~from_connection,
        name=UPSTREAM,
        test__dataset__upstream_edges__in=LineageEdge.compared().filter(upstream=copy.dataset),
    )
    looking_back = TableReference.objects.filter(name=THIS, test__dataset=copy.dataset)
    concerned = read.values("test").union(fed.values("test"), looking_back.values("test"))
    live = QualityTest.objects.filter(pk__in=concerned, retired_at=None, version__cadence=None)
    for test in live.select_related("version", "dataset__feed"):
        assert test.version is not None
        looks = [_units_reading(ask, test.dataset, copy, touched) for ask in _asks_within_reach(test.version.flattened)]
        conditions = [condition for condition in looks if condition is not None]
        if conditions:
            yield Q(test=test) & reduce(or_, conditions)


def copies_fed_by(copy: DatasetCopy) -> QuerySet[DatasetCopy]:
    """The monitored copies in its data center that are compared with it as their upstream."""
    loaded = Q(dataset__ingested=True, dataset__feed__kind=FeedKind.CONNECTION)
    edges = LineageEdge.compared().filter(upstream=copy.dataset)
    fed = DatasetCopy.objects.filter(
        dataset__upstream_edges__in=edges, data_center=copy.data_center_id, monitored_from__isnull=False
    )
    return fed.exclude(loaded).filter(dataset__offboarded_at=None).select_related("dataset", "data_center")


@lru_cache(maxsize=4096)
def _asks_within_reach(flattened: str) -> tuple[Ask, ...]:
    """What the test names, but for the furthest shifts."""
    asks = dict.fromkeys(ask for call in function_calls(parsed_or_blank(flattened)) for ask in asks_of(call))
    shifts = sorted({ask.table.shift for ask in asks if ask.table.shift}, reverse=True)[:MAX_SHIFTS]
    return tuple(ask for ask in asks if not ask.table.shift or ask.table.shift in shifts)


def _units_reading(ask: Ask, dataset: Dataset, copy: DatasetCopy, touched: TouchedRanges) -> Q | None:
    """The units for which `ask` reads the copy: of each partition its own, or all where the table is read as a whole."""
    if _refers_to(ask.table, dataset, copy):
        return _in_reach_of(ask.table, copy) & _overlapping(ask.table, _is_whole(ask, copy), dataset, touched)
    for name in ask.measure.other_tables:
        if _refers_to(name, dataset, copy):
            return _in_reach_of(name, copy) & _overlapping(
                ask.table, ask.measure.kind not in TWO_SIDED_KINDS, dataset, touched
            )
    return None


def _in_reach_of(name: Name, copy: DatasetCopy) -> Q:
    return _ALL_UNITS if name.data_center else Q(copy__data_center=copy.data_center_id)


def _overlapping(name: Name, whole: bool, dataset: Dataset, touched: TouchedRanges) -> Q:
    if whole:
        return _ALL_UNITS
    return _units_looking_back(name.shift, dataset, touched) if name.shift else units_overlapping(touched)


def units_overlapping(ranges: TouchedRanges) -> Q:
    """The units of ranges that meet one of `ranges`."""
    meets = Q(pk__in=[])
    for start, end in sorted(set(ranges)):
        meets |= Q(start__lt=end, end__gt=start)
    return meets


def _units_looking_back(shift: timedelta, dataset: Dataset, touched: TouchedRanges) -> Q:
    """The units of the partitions that are as far ahead of those touched as the shift looks back."""
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE:
        return Q(pk__in=[])
    ranges = [Interval(start, end) for start, end in touched]
    if any(touched_range.is_everything for touched_range in ranges):
        return _ALL_UNITS
    there = (partition for touched_range in ranges for partition in partitions_within(touched_range, grain, zone))
    return Q(start__in={shifted_partition(partition, -shift, grain, zone).start for partition in there})


def _is_whole(ask: Ask, copy: DatasetCopy) -> bool:
    return ask.reach is not Reach.PARTITION or copy.dataset.partition_grain is Grain.NONE


def _refers_to(name: Name, dataset: Dataset, copy: DatasetCopy) -> bool:
    """`this` of the partition under test is left to whoever looks for the units of a copy's own partitions."""
    if name.data_center not in ("", copy.data_center.name):
        return False
    if name.dataset == THIS:
        return bool(name.shift) and dataset.pk == copy.dataset_id
    return name.dataset == copy.dataset.name or (name.dataset == UPSTREAM and not dataset.is_loaded_from_connection)
