"""Answers that our own database knows: open findings, commits, and when partitions arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Max

from ingestion.models import Commit, Finding, TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.catalog.storages import is_lake
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import shifted_partition
from quality.domain.backtest import Arrival, complete_at
from quality.domain.language.measures import LAST_COMMIT, Answer, Ask
from quality.models import Unit


@dataclass
class DatabaseAnswers:
    """Findings are rows of ours; so are the commits of what Lakehub ingests. A copy that it only watches is asked itself.

    `asked` is all that the units of the copy ask: when their partitions arrived is looked up at once.
    """

    copy: DatasetCopy
    asked: Sequence[tuple[Unit, Ask]]

    def has(self, unit: Unit, ask: Ask) -> bool:
        """Of a measure that is recorded."""
        return ask.measure != LAST_COMMIT or _has_recorded_commits(self.copy)

    def answer(self, unit: Unit, ask: Ask, now: datetime) -> Answer:
        if ask.measure.kind == "delay":
            return self._delay(unit, ask, now)
        return _last_commit(unit) if ask.measure == LAST_COMMIT else _open_findings_count(unit, ask)

    def _delay(self, unit: Unit, ask: Ask, now: datetime) -> Answer:
        """In seconds; what came to an earlier partition later than the tested one is old now does not count."""
        partition = _shifted_partition(unit, ask)
        if partition is None:
            return None
        until = partition.end + (now - unit.end)
        came = [arrival for arrival in self._arrivals[partition] if arrival.at <= until]
        complete = complete_at(came, sum(arrival.rows for arrival in came))
        return None if complete is None else max(0.0, (complete - partition.end).total_seconds())

    @cached_property
    def _arrivals(self) -> dict[Interval, list[Arrival]]:
        """Of each unit the partitions that its test looks at; a deviation looks at more than a thousand."""
        looked_at = (_shifted_partition(unit, ask) for unit, ask in self.asked if ask.measure.kind == "delay")
        partitions = {partition for partition in looked_at if partition is not None}
        return partition_arrivals(self.copy, sorted(partitions, key=lambda partition: partition.start))


def _shifted_partition(unit: Unit, ask: Ask) -> Interval | None:
    dataset = unit.copy.dataset
    try:
        return shifted_partition(Interval(unit.start, unit.end), ask.table.shift, dataset.partition_grain, dataset.zone)
    except ValueError:
        return None


ARRIVALS_BATCH = 2_000


def partition_arrivals(copy: DatasetCopy, partitions: Sequence[Interval]) -> dict[Interval, list[Arrival]]:
    """The commits of each of the partitions: one query, but for more than ARRIVALS_BATCH of them."""
    arrivals: dict[Interval, list[Arrival]] = {partition: [] for partition in partitions}
    for number in range(0, len(partitions), ARRIVALS_BATCH):
        starts = [partition.start for partition in partitions[number : number + ARRIVALS_BATCH]]
        touched = TouchedPartition.objects.filter(copy=copy, start__in=starts)
        for start, end, at, rows in touched.values_list("start", "end", "commit__completed_at", "rows"):
            if (partition := Interval(start, end)) in arrivals:
                arrivals[partition].append(Arrival(at, rows))
    return arrivals


def _has_recorded_commits(copy: DatasetCopy) -> bool:
    return copy.dataset.ingested or (copy.source is not None and not is_lake(copy.source[0].plugin))


def _open_findings_count(unit: Unit, ask: Ask) -> Answer:
    (kind,) = ask.measure.columns
    findings = Finding.objects.filter(
        copy=unit.copy_id, kind=kind, start__lt=unit.end, end__gt=unit.start, cleared_at=None
    )
    return findings.count()


def _last_commit(unit: Unit) -> Answer:
    newest: datetime | None = Commit.objects.filter(copy=unit.copy_id).aggregate(Max("completed_at"))[
        "completed_at__max"
    ]
    return newest
