"""Who looks into a table: the tests of other datasets whose answer a commit to it may change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from django.db.models import Q

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.calendar import Grain
from quality.domain.evaluation import asks
from quality.domain.expression import UPSTREAM, Name
from quality.domain.expression.measures import Ask, Reach
from quality.measuring import understood
from quality.models import Test

_EVERY = Q(pk__isnull=False)
"""An empty Q would be left out by `|`."""


def lookers(copy: DatasetCopy, meeting: Q) -> Iterator[Q]:
    """For each test of another dataset that reads the copy, its units that do. `meeting`: those of the ranges touched."""
    named = Q(version__flattened__contains=copy.dataset.name)
    fed = Q(version__flattened__contains=UPSTREAM, dataset__ingested=False)
    fed &= Q(dataset__upstream_edges__upstream=copy.dataset, dataset__upstream_edges__one_to_one=True)
    live = Test.objects.filter(named | fed, retired_at=None, version__cadence=None).exclude(dataset=copy.dataset)
    for test in live.select_related("version", "dataset").distinct():
        assert test.version is not None
        reads = [_reads(ask, test, copy, meeting) for ask in asks(understood(test.version.flattened))]
        found = [one for one in reads if one is not None]
        if found:
            yield Q(test=test) & reduce(or_, found)


def _reads(ask: Ask, test: Test, copy: DatasetCopy, meeting: Q) -> Q | None:
    """The units for which `ask` reads the copy: of each partition its own, or all where the table is read as a whole."""
    for name, whole in ((ask.table, _is_whole(ask, copy)), (ask.measure.other, True)):
        if name is not None and _names(name, test, copy):
            where = _EVERY if name.data_center else Q(copy__data_center=copy.data_center_id)
            return where if whole else where & meeting
    return None


def _is_whole(ask: Ask, copy: DatasetCopy) -> bool:
    return ask.reach is not Reach.PARTITION or copy.dataset.partition_grain is Grain.NONE


def _names(name: Name, test: Test, copy: DatasetCopy) -> bool:
    if name.data_center not in ("", copy.data_center.name):
        return False
    return name.dataset == copy.dataset.name or (name.dataset == UPSTREAM and not test.dataset.ingested)
