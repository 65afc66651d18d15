"""Who looks into a table: the tests whose answer a commit to it may change, of other datasets and of later partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from functools import lru_cache, reduce
from operator import or_
from typing import TypeAlias

from django.db.models import Q

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.calendar import Grain, partitions_within, shifted
from lakehub.kernel.interval import Interval
from quality.domain.expression import THIS, UPSTREAM, Name, asks_of, leaf_calls
from quality.domain.expression.measures import Ask, Reach
from quality.domain.names import names_read
from quality.exchanges import EXCHANGES
from quality.measuring import understood
from quality.models import Test, TestRead

Touched: TypeAlias = Collection[tuple[datetime, datetime]]

MOST_SHIFTS = 31
"""A commit retests the partitions that look back to it through so many shifts of a test, the nearest. What a series such as
`deviation` looks at does not count: one late partition moves its baseline by little."""
_EVERY = Q(pk__isnull=False)
"""An empty Q would be left out by `|`."""


def lookers(copy: DatasetCopy, touched: Touched) -> Iterator[Q]:
    """For each test that reads the copy by another name than `this` of the same partition, its units that do."""
    read = TestRead.objects.filter(name=copy.dataset.name)
    fed = TestRead.objects.filter(
        name=UPSTREAM,
        test__dataset__ingested=False,
        test__dataset__upstream_edges__upstream=copy.dataset,
        test__dataset__upstream_edges__one_to_one=True,
    )
    looking_back = TestRead.objects.filter(name=THIS, test__dataset=copy.dataset)
    concerned = read.values("test").union(fed.values("test"), looking_back.values("test"))
    live = Test.objects.filter(pk__in=concerned, retired_at=None, version__cadence=None)
    for test in live.select_related("version", "dataset"):
        assert test.version is not None
        looks = [_looks(ask, test.dataset, copy, touched) for ask in _nearest(test.version.flattened)]
        found = [one for one in looks if one is not None]
        if found:
            yield Q(test=test) & reduce(or_, found)


def keep_reads(test: Test) -> None:
    """Writes down what the current version reads. Call it with every new version, in its transaction."""
    assert test.version is not None
    test.reads.all().delete()
    TestRead.objects.bulk_create(TestRead(test=test, name=name) for name in sorted(names_read(test.version.flattened)))


@lru_cache(maxsize=4096)
def _nearest(flattened: str) -> tuple[Ask, ...]:
    """What the test names, but for the furthest shifts."""
    asks = dict.fromkeys(ask for call in leaf_calls(understood(flattened)) for ask in asks_of(call))
    shifts = sorted({ask.table.shift for ask in asks if ask.table.shift}, reverse=True)[:MOST_SHIFTS]
    return tuple(ask for ask in asks if not ask.table.shift or ask.table.shift in shifts)


def _looks(ask: Ask, dataset: Dataset, copy: DatasetCopy, touched: Touched) -> Q | None:
    """The units for which `ask` reads the copy: of each partition its own, or all where the table is read as a whole."""
    if _names(ask.table, dataset, copy):
        return _where(ask.table, copy) & _ranges(ask.table, _is_whole(ask, copy), dataset, touched)
    for name in ask.measure.others:
        if _names(name, dataset, copy):
            return _where(name, copy) & _ranges(ask.table, ask.measure.kind not in EXCHANGES, dataset, touched)
    return None


def _where(name: Name, copy: DatasetCopy) -> Q:
    return _EVERY if name.data_center else Q(copy__data_center=copy.data_center_id)


def _ranges(name: Name, whole: bool, dataset: Dataset, touched: Touched) -> Q:
    if whole:
        return _EVERY
    return _looking_back(name.shift, dataset, touched) if name.shift else meeting(touched)


def meeting(ranges: Touched) -> Q:
    """The units of ranges that meet one of `ranges`."""
    meets = Q(pk__in=[])
    for start, end in sorted(set(ranges)):
        meets |= Q(start__lt=end, end__gt=start)
    return meets


def _looking_back(shift: timedelta, dataset: Dataset, touched: Touched) -> Q:
    """The units of the partitions that are as far ahead of those touched as the shift looks back."""
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE:
        return Q(pk__in=[])
    ranges = [Interval(start, end) for start, end in touched]
    if any(one.is_everything for one in ranges):
        return _EVERY
    there = (partition for one in ranges for partition in partitions_within(one, grain, zone))
    return Q(start__in={shifted(one, -shift, grain, zone).start for one in there})


def _is_whole(ask: Ask, copy: DatasetCopy) -> bool:
    return ask.reach is not Reach.PARTITION or copy.dataset.partition_grain is Grain.NONE


def _names(name: Name, dataset: Dataset, copy: DatasetCopy) -> bool:
    """`this` of the partition under test is left to whoever looks for the units of a copy's own partitions."""
    if name.data_center not in ("", copy.data_center.name):
        return False
    if name.dataset == THIS:
        return bool(name.shift) and dataset.pk == copy.dataset_id
    return name.dataset == copy.dataset.name or (name.dataset == UPSTREAM and not dataset.ingested)
