"""Which partitions are known to hold rows: those are tested, whatever the calendar of their dataset expects."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from ingestion.models import TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.calendar import partition_named
from lakehub.kernel.interval import Interval
from quality.models import Watch

log = logging.getLogger(__name__)


def held(copy: DatasetCopy) -> frozenset[Interval] | None:
    """Of what is ingested, what commits wrote, also before it was monitored; of what is watched, what the last look saw.

    None: nothing is known before the first look.
    """
    if copy.dataset.ingested:
        written = TouchedPartition.objects.filter(copy=copy).values_list("start", "end").distinct()
        return frozenset(Interval(start, end) for start, end in written)
    watch = Watch.objects.filter(copy=copy, looked_at__isnull=False).first()
    return None if watch is None else frozenset(named(watch.seen, copy))


def named(names: Iterable[str], copy: DatasetCopy) -> Iterator[Interval]:
    """The partitions with these names. What names none has no place in time, and no test looks at it."""
    for name in sorted(names):
        try:
            yield partition_named(name, copy.dataset.partition_grain, copy.dataset.zone)
        except ValueError as problem:
            log.warning("%s holds rows where no test of partitions looks: %s", copy, problem)
