"""What the names of an expression stand for on one copy: which table, read by which engine, cut into which partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.tables import HudiCopy, StoredTable
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import (
    Grain,
    floor_to_bucket,
    parse_partition_name,
    partition_at,
    partition_name,
    partitions_within,
    shifted_partition,
)
from lakehub.kernel.partitions.form import PartitionForm
from quality.domain.language import THIS, UPSTREAM, Name
from quality.domain.language.measures import LATEST, ROWS, Ask, Measure, Reach
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, Part, WholeTable

COMPARED_DATASETS = "compared_with"
"""In the detail of a result that names records: the other datasets whose records they may be."""


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
    form: PartitionForm | None = None
    """How the table says its partitions; None: by their names in one column."""

    def part(self, reach: Reach, partition: Interval) -> Part:
        """The rows that a measure of `reach` looks at. A table without partitions is always looked at as a whole."""
        if self.grain is Grain.NONE or reach is Reach.TABLE or (reach is Reach.PARTITION and partition.is_everything):
            return WholeTable()
        if reach is Reach.EACH_PARTITION:
            return EachPartition(self.partition_column, self.form)
        value, *also = self._names_within(partition)
        return OnePartition(self.partition_column, value, self.form, tuple(also))

    def _names_within(self, partition: Interval) -> Iterator[str]:
        """The partitions that `partition` is made of, where this table is cut finer; else the one that holds its start."""
        first = partition_at(partition.start, self.grain, self.zone)
        whole = (first,) if first.end >= partition.end else partitions_within(partition, self.grain, self.zone)
        for part in whole:
            if first.end < partition.end and not partition.covers(part):
                raise CannotRead(
                    f"The partitions of this table, by {self.grain} in {self.zone.key}, do not add up to those of the table "
                    "that is tested. Compare tables of one grain and time zone, or one whose partitions nest in the other's."
                )
            yield partition_name(part, self.grain, self.zone)


@dataclass(frozen=True)
class Buckets:
    """Partitions by `grain` in `zone`, to be summed into those by `larger` in `larger_zone`."""

    grain: Grain
    zone: ZoneInfo
    larger: Grain
    larger_zone: ZoneInfo

    def summed(self, rows: Mapping[str | None, int]) -> dict[str | None, int]:
        """What is no partition keeps its name."""
        summed: dict[str | None, int] = {}
        for name, count in rows.items():
            bucket = self._bucket_of(name)
            summed[bucket] = summed.get(bucket, 0) + count
        return summed

    def _bucket_of(self, name: str | None) -> str | None:
        try:
            start = parse_partition_name(name or "", self.grain, self.zone).start
        except ValueError:
            return name
        return partition_name(partition_at(start, self.larger, self.larger_zone), self.larger, self.larger_zone)


@dataclass(frozen=True)
class AskedRows:
    """What a measure looks at: a part of a table, and which range that is. A query has its range bound."""

    table: TableBinding
    partition: Interval
    part: Part
    measure: Measure
    buckets: Buckets | None = None
    """Into which larger partitions row counts by partition are summed, where the table is cut otherwise than the tested one."""


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

    @property
    def event_zone(self) -> ZoneInfo:
        """Of event times without a zone."""
        return self._copy.dataset.event_zone

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
        edge = LineageEdge.compared().filter(downstream=dataset).select_related("upstream").first()
        if edge is None:
            lacking = f"{_why_no_table(dataset)}, and it" if dataset.ingested else dataset.name
            raise CannotRead(f"{lacking} has no upstream whose rows map one to one.")
        return _copy_in(edge.upstream.name, center)


def compared_datasets(asks_by_test: Mapping[str, Iterable[Ask]], copy: DatasetCopy) -> dict[str, list[str]]:
    """For each test the other datasets whose records an exchange may name. Each table is looked up once, whatever the number
    of tests."""
    names = {test: _exchanged_names(asks) for test, asks in asks_by_test.items()}
    copies = _copies_of(frozenset().union(*names.values()), copy)
    rows = DatasetCopy.with_removed.filter(pk__in=set(copies.values())).exclude(dataset=copy.dataset_id)
    others = dict(rows.values_list("pk", "dataset__name"))
    return {
        test: sorted({others[copies[name]] for name in of_test if copies.get(name) in others})
        for test, of_test in names.items()
    }


def _exchanged_names(asks: Iterable[Ask]) -> frozenset[Name]:
    """Of the tables on both sides."""
    return frozenset(name for ask in asks if ask.measure.other is not None for name in (ask.table, ask.measure.other))


def _copies_of(names: Iterable[Name], copy: DatasetCopy) -> dict[Name, int]:
    """The copy that each name stands for; what cannot be read and what is a source are left out."""
    places, copies = TableBindings(copy), dict[Name, int]()
    for name in names:
        with suppress(CannotRead):
            place = places.binding_of(name)
            if place.copy is not None:
                copies[name] = place.copy
    return copies


def asked_rows(ask: Ask, tested: Interval, places: TableBindings, *, now: datetime) -> AskedRows:
    """What an ask looks at where `tested` is the range of its unit. Raises CannotRead."""
    table = places.binding_of(ask.table)
    partition = _shifted_partition(ask.table, tested, table, places)
    part = table.part(ask.reach, partition)
    measure = ask.measure
    if measure.is_query and isinstance(part, OnePartition):
        # As two times, and as the value of the partition column. The whole has none.
        value = part.value if table.form is None else table.form.value_of(partition)
        measure = replace(measure, values=(measure.values[0], partition.start, partition.end, value))
    if measure.kind == LATEST:
        # What is dated later than now says nothing of what has come; nor does the bucket that goes on.
        ended = floor_to_bucket(now, places.grain, places.zone)
        measure = replace(measure, values=(ended.astimezone(places.zone), ended.astimezone(places.event_zone)))
    return AskedRows(table, partition, part, measure, _buckets(ask, table, places))


def _buckets(ask: Ask, table: TableBinding, places: TableBindings) -> Buckets | None:
    same = (table.grain, table.zone.key) == (places.grain, places.zone.key)
    if (
        same
        or ask.reach is not Reach.EACH_PARTITION
        or ask.measure != ROWS
        or Grain.NONE in (table.grain, places.grain)
    ):
        return None
    return Buckets(table.grain, table.zone, places.grain, places.zone)


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
    return DatasetCopy.objects.select_related("dataset__feed__connection", "connection", "data_center").filter(
        dataset__offboarded_at=None
    )


def _binding_of_copy(copy: DatasetCopy) -> TableBinding:
    """Of what Lakehub ingests the table in the lake; of what it only watches the table where it lies."""
    place = _binding_in_lake(copy) if copy.dataset.ingested else _binding_where_monitored(copy)
    return replace(place, copy=copy.pk)


def _binding_in_lake(copy: DatasetCopy) -> TableBinding:
    """Its partitions have the names that Lakehub gives them, however the source says them."""
    dataset = copy.dataset
    return TableBinding(HudiCopy(copy.uri), dataset.lake_partition_column, dataset.partition_grain, dataset.zone)


def _binding_where_monitored(copy: DatasetCopy) -> TableBinding:
    if copy.source is None:
        raise CannotRead(f"{_why_no_table(copy.dataset)}.")
    connection, table = copy.source
    return _binding(copy.dataset, connection, table)


def _binding_at_source(dataset: Dataset) -> TableBinding:
    """The table that its jobs load from."""
    feed = dataset.feed_or_none
    if feed is None or feed.connection is None:
        raise CannotRead(f"{_why_no_table(dataset)}.")
    return _binding(dataset, feed.connection, feed.object)


def _binding(dataset: Dataset, connection: Connection, table: str) -> TableBinding:
    form = dataset.source_form
    columns = form.columns if form is not None else ("",)
    return TableBinding(
        _stored_table(connection, table),
        columns[0],
        dataset.partition_grain,
        dataset.zone,
        connection.name,
        form=None if form is None or form.is_named else form,
    )


def _why_no_table(dataset: Dataset) -> str:
    """Of what no connection feeds."""
    feed = dataset.feed_or_none
    return f"{dataset.name} comes from {feed.address}, which is not a table" if feed else f"{dataset.name} has no feed"


def _stored_table(connection: Connection, table: str) -> StoredTable:
    try:
        return connection.storage.table(table)
    except MetadataUnavailable as unavailable:
        raise CannotRead(str(unavailable)) from unavailable
