"""Which partitions are known to hold rows: those are tested, whatever the calendar of their dataset expects."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from ingestion.models import TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import parse_partition_name
from quality.models import ChangePoll

logger = logging.getLogger(__name__)


def populated_partitions(copy: DatasetCopy) -> frozenset[Interval] | None:
    """Of what is ingested, what commits wrote, also before it was monitored; of what is watched, what the last look saw.

    None: nothing is known before the first look.
    """
    if copy.dataset.ingested:
        written = TouchedPartition.objects.filter(copy=copy).values_list("start", "end").distinct()
        return frozenset(Interval(start, end) for start, end in written)
    watch = ChangePoll.objects.filter(copy=copy, polled_at__isnull=False).first()
    return None if watch is None else frozenset(partitions_named(watch.partition_states, copy))


def partitions_named(names: Iterable[str], copy: DatasetCopy) -> Iterator[Interval]:
    """The partitions with these names. What names none has no place in time, and no test looks at it."""
    for name in sorted(names):
        try:
            yield parse_partition_name(name, copy.dataset.partition_grain, copy.dataset.zone)
        except ValueError as problem:
            logger.warning("%s holds rows where no test of partitions looks: %s", copy, problem)
