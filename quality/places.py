"""What the names of an expression stand for on one copy: which table, read by which engine, cut into which partitions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from lakehub.catalog.models import Dataset, DatasetCopy, Feed, LineageEdge
from lakehub.kernel.calendar import Grain, partition_name
from lakehub.kernel.interval import Interval
from quality.domain.expression import THIS, UPSTREAM, Name
from quality.domain.expression.measures import Reach
from quality.engines.scan import CannotRead, Each, Files, HudiCopy, One, Part, SqlTable, Target, Whole

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl"}


@dataclass(frozen=True)
class Place:
    """A table that can be read."""

    target: Target
    column: str
    grain: Grain
    zone: ZoneInfo
    connection: str = ""
    """Whose table it is, where it is not in the lake."""
    copy: int | None = None
    """The copy whose table it is; None: the source of one."""

    @property
    def engine(self) -> str:
        return "sqlalchemy" if isinstance(self.target, SqlTable) else "duckdb"

    def part(self, reach: Reach, partition: Interval) -> Part:
        """The rows that a measure of `reach` looks at. A table without partitions is always looked at as a whole."""
        if self.grain is Grain.NONE or reach is Reach.TABLE or (reach is Reach.PARTITION and partition.is_everything):
            return Whole()
        if reach is Reach.EACH_PARTITION:
            return Each(self.column)
        return One(self.column, partition_name(partition, self.grain, self.zone))


class Places:
    """The places of one copy's expressions, looked up once each."""

    def __init__(self, copy: DatasetCopy) -> None:
        self._copy = copy
        self._known: dict[tuple[str, str], Place] = {}

    @property
    def grain(self) -> Grain:
        """How the dataset is cut whose tests these are."""
        return self._copy.dataset.partition_grain

    @property
    def zone(self) -> ZoneInfo:
        return self._copy.dataset.zone

    def of(self, name: Name) -> Place:
        """Raises CannotRead where the name stands for nothing here. The place is the same whatever its shift."""
        table = name.dataset, name.data_center
        if table not in self._known:
            self._known[table] = self._find(name)
        return self._known[table]

    def know(self, datasets: Collection[str]) -> None:
        """Looks up the places of these in the copy's own data center at once; those that have none there are left out."""
        here = self._copy.data_center
        for copy in _live_copies().filter(dataset__name__in=datasets, data_center=here):
            self._known[copy.dataset.name, ""] = _place(copy)

    def _find(self, name: Name) -> Place:
        center = name.data_center or self._copy.data_center.name
        if name.dataset == UPSTREAM:
            return self._upstream(center)
        if name.dataset == THIS and center == self._copy.data_center.name:
            return _place(self._copy)
        dataset = self._copy.dataset.name if name.dataset == THIS else name.dataset
        return _copy_in(dataset, center)

    def _upstream(self, center: str) -> Place:
        dataset = self._copy.dataset
        if dataset.ingested:
            return _at_source(dataset)
        edge = (
            LineageEdge.objects.filter(downstream=dataset, one_to_one=True, upstream__offboarded_at=None)
            .select_related("upstream")
            .order_by("pk")
            .first()
        )
        if edge is None:
            raise CannotRead(f"{dataset.name} has no upstream whose rows map one to one.")
        return _copy_in(edge.upstream.name, center)


def _copy_in(dataset: str, center: str) -> Place:
    copy = _live_copies().filter(dataset__name=dataset, data_center__name=center).first()
    if copy is None:
        raise CannotRead(f"{dataset} has no copy in {center}.")
    return _place(copy)


def _live_copies() -> QuerySet[DatasetCopy]:
    return DatasetCopy.objects.select_related("dataset__feed__connection", "data_center").filter(
        dataset__offboarded_at=None
    )


def _place(copy: DatasetCopy) -> Place:
    """Of what Lakehub ingests the table in the lake; of what it only watches the table where it lies."""
    place = _described(copy.dataset, HudiCopy(copy.uri)) if copy.dataset.ingested else _at_source(copy.dataset)
    return replace(place, copy=copy.pk)


def _at_source(dataset: Dataset) -> Place:
    return _described(dataset, _source(dataset.feed), dataset.feed.connection.name)


def _described(dataset: Dataset, target: Target, connection: str = "") -> Place:
    return Place(target, dataset.partition_column, dataset.partition_grain, dataset.zone, connection)


def _source(feed: Feed) -> Target:
    connection = feed.connection
    if connection.plugin == "sql":
        return SqlTable(connection.url, feed.object)
    address = f"{connection.url.rstrip('/')}/{feed.object}"
    if connection.plugin == "hudi":
        return HudiCopy(address)
    ending = PurePosixPath(feed.object).suffix
    return Files(address, _FORMATS.get(ending, ending.lstrip(".")))
