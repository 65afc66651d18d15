"""What the names of an expression stand for on one copy: which table, read by which engine, cut into which partitions."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.tables import HudiCopy, StoredTable
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, Feed, LineageEdge
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_name, shifted_partition
from quality.domain.language import THIS, UPSTREAM, Name
from quality.domain.language.measures import Ask, Measure, Reach
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, Part, WholeTable


@dataclass(frozen=True)
class TableBinding:
    """A table that can be read."""

    target: StoredTable
    partition_column: str
    grain: Grain
    zone: ZoneInfo
    connection: str = ""
    """Whose table it is, where it is not in the lake."""
    copy: int | None = None
    """The copy whose table it is; None: the source of one."""

    def part(self, reach: Reach, partition: Interval) -> Part:
        """The rows that a measure of `reach` looks at. A table without partitions is always looked at as a whole."""
        if self.grain is Grain.NONE or reach is Reach.TABLE or (reach is Reach.PARTITION and partition.is_everything):
            return WholeTable()
        if reach is Reach.EACH_PARTITION:
            return EachPartition(self.partition_column)
        return OnePartition(self.partition_column, partition_name(partition, self.grain, self.zone))


@dataclass(frozen=True)
class AskedRows:
    """What a measure looks at: a part of a table, and which range that is. A query has its range bound."""

    table: TableBinding
    partition: Interval
    part: Part
    measure: Measure


@dataclass
class TableBindings:
    """The places of one copy's expressions, looked up once each."""

    _copy: DatasetCopy
    _known: dict[tuple[str, str], TableBinding] = field(default_factory=dict)

    @property
    def grain(self) -> Grain:
        """How the dataset is cut whose tests these are."""
        return self._copy.dataset.partition_grain

    @property
    def zone(self) -> ZoneInfo:
        return self._copy.dataset.zone

    def binding_of(self, name: Name) -> TableBinding:
        """Raises CannotRead where the name stands for nothing here. The place is the same whatever its shift."""
        table = name.dataset, name.data_center
        if table not in self._known:
            self._known[table] = self._bind(name)
        return self._known[table]

    def preload(self, datasets: Collection[str]) -> None:
        """Looks up the places of these in the copy's own data center at once; those that have none there are left out."""
        here = self._copy.data_center
        for copy in _live_copies().filter(dataset__name__in=datasets, data_center=here):
            with suppress(CannotRead):
                self._known[copy.dataset.name, ""] = _binding_of_copy(copy)

    def _bind(self, name: Name) -> TableBinding:
        center = name.data_center or self._copy.data_center.name
        if name.dataset == UPSTREAM:
            return self._upstream(center)
        if name.dataset == THIS and center == self._copy.data_center.name:
            return _binding_of_copy(self._copy)
        dataset = self._copy.dataset.name if name.dataset == THIS else name.dataset
        return _copy_in(dataset, center)

    def _upstream(self, center: str) -> TableBinding:
        dataset = self._copy.dataset
        if dataset.is_loaded_from_connection:
            return _binding_at_source(dataset)
        edge = (
            LineageEdge.objects.filter(downstream=dataset, one_to_one=True, upstream__offboarded_at=None)
            .select_related("upstream")
            .order_by("pk")
            .first()
        )
        if edge is None:
            lacking = f"{_why_no_table(dataset)}, and it" if dataset.ingested else dataset.name
            raise CannotRead(f"{lacking} has no upstream whose rows map one to one.")
        return _copy_in(edge.upstream.name, center)


def asked_rows(ask: Ask, tested: Interval, places: TableBindings) -> AskedRows:
    """What an ask looks at where `tested` is the range of its unit. Raises CannotRead."""
    table = places.binding_of(ask.table)
    partition = _shifted_partition(ask.table, tested, table, places)
    part = table.part(ask.reach, partition)
    measure = ask.measure
    if measure.is_query and isinstance(part, OnePartition):
        # As two times, and as the value of the partition column. The whole has none.
        measure = replace(measure, values=(measure.values[0], partition.start, partition.end, part.value))
    return AskedRows(table, partition, part, measure)


def _shifted_partition(name: Name, tested: Interval, table: TableBinding, places: TableBindings) -> Interval:
    """The range that the name looks at: the tested one, or an earlier one on the calendar of the tested dataset."""
    if not name.shift:
        return tested
    if table.grain is Grain.NONE:
        raise CannotRead("this table has no partitions, so none is earlier than another")
    try:
        return shifted_partition(tested, name.shift, places.grain, places.zone)
    except ValueError as problem:
        raise CannotRead(str(problem)) from problem


def _copy_in(dataset: str, center: str) -> TableBinding:
    copy = _live_copies().filter(dataset__name=dataset, data_center__name=center).first()
    if copy is None:
        raise CannotRead(f"{dataset} has no copy in {center}.")
    return _binding_of_copy(copy)


def _live_copies() -> QuerySet[DatasetCopy]:
    return DatasetCopy.objects.select_related("dataset__feed__connection", "data_center").filter(
        dataset__offboarded_at=None
    )


def _binding_of_copy(copy: DatasetCopy) -> TableBinding:
    """Of what Lakehub ingests the table in the lake; of what it only watches the table where it lies."""
    place = _binding(copy.dataset, HudiCopy(copy.uri)) if copy.dataset.ingested else _binding_at_source(copy.dataset)
    return replace(place, copy=copy.pk)


def _binding_at_source(dataset: Dataset) -> TableBinding:
    feed = dataset.feed_or_none
    if feed is None or feed.connection is None:
        raise CannotRead(f"{_why_no_table(dataset)}.")
    return _binding(dataset, _table_at_source(feed, feed.connection), feed.connection.name)


def _why_no_table(dataset: Dataset) -> str:
    """Of what no connection feeds."""
    feed = dataset.feed_or_none
    return f"{dataset.name} comes from {feed.address}, which is not a table" if feed else f"{dataset.name} has no feed"


def _binding(dataset: Dataset, target: StoredTable, connection: str = "") -> TableBinding:
    return TableBinding(target, dataset.partition_column, dataset.partition_grain, dataset.zone, connection)


def _table_at_source(feed: Feed, connection: Connection) -> StoredTable:
    try:
        return connection.storage.table(feed.object)
    except MetadataUnavailable as unavailable:
        raise CannotRead(str(unavailable)) from unavailable
