"""Which partitions are known to hold rows: those are tested, whatever the calendar of their dataset expects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from django.db.models import Q

from ingestion.models import TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, parse_partition_name
from quality.models import ChangePoll, Unit


def populated_partitions(copy: DatasetCopy) -> frozenset[Interval] | None:
    """Of what is ingested, what commits wrote, also before it was monitored; of what is watched, what the last look saw.

    None: nothing is known before the first look.
    """
    if copy.dataset.ingested:
        written = TouchedPartition.objects.filter(copy=copy).values_list("start", "end").distinct()
        ranges = frozenset(Interval(start, end) for start, end in written)
        # What another writer put under a name that is no partition may be anywhere, and is none.
        return ranges if copy.dataset.partition_grain is Grain.NONE else ranges - {EVERYTHING}
    watch = ChangePoll.objects.filter(copy=copy, polled_at__isnull=False).first()
    return None if watch is None else frozenset(partitions_named(watch.partition_states, copy))


_HELD_ROWS = Q(test__key="volume", test__generated=True, last_pass_at__isnull=False)
"""No other test needs rows to pass. That one failed says nothing of rows: where none were expected, none may be missing."""
_HELD_UPSTREAM = Q(test__key="completeness", test__generated=True) & (
    Q(last_pass_at__isnull=False) | Q(first_fail_at__isnull=False)
)
"""A share of no rows is neither passed nor failed."""


def awaited_among(copy: DatasetCopy, partitions: Collection[Interval]) -> frozenset[Interval]:
    """Those of `partitions` in which rows are expected whatever the calendar says: of which the copy holds rows or has held
    some, by its commits, its looks and its tests, or upstream, by the test that compares with it."""
    starts = {partition.start for partition in partitions}
    tested = Unit.objects.filter(_HELD_ROWS | _HELD_UPSTREAM, copy=copy, start__in=starts)
    seen = {Interval(start, end) for start, end in tested.values_list("start", "end").distinct()}
    return _populated_among(copy, partitions) | (frozenset(partitions) & seen)


def _populated_among(copy: DatasetCopy, partitions: Collection[Interval]) -> frozenset[Interval]:
    """Those that the copy holds rows of, or has held some, by its commits and looks."""
    if not copy.dataset.ingested:
        return frozenset(partitions) & (populated_partitions(copy) or frozenset())
    starts = {partition.start for partition in partitions}
    written = TouchedPartition.objects.filter(copy=copy, start__in=starts).values_list("start", "end").distinct()
    return frozenset(partitions) & {Interval(start, end) for start, end in written}


def partitions_named(names: Iterable[str], copy: DatasetCopy) -> Iterator[Interval]:
    """The partitions with these names. What names none has no place in time, and no test looks at it: it is a finding
    (ingestion.lake.misplaced_rows)."""
    for name in sorted(names):
        with suppress(ValueError):
            yield parse_partition_name(name, copy.dataset.partition_grain, copy.dataset.zone)
