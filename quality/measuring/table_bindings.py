"""What the names of an expression stand for on one copy: which table, read by which engine, cut into which partitions."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from lakehub.catalog.models import Connection, Dataset, DatasetCopy, Feed, LineageEdge
from lakehub.kernel.partitions import Grain
from quality.domain.language import THIS, UPSTREAM, Name
from quality.engines.scans.table_binding import TableBinding
from quality.engines.scans.targets import CannotRead, Files, HudiCopy, SqlTable, Target

_FILE_FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl"}


class TableBindings:
    """The places of one copy's expressions, looked up once each."""

    def __init__(self, copy: DatasetCopy) -> None:
        self._copy = copy
        self._known: dict[tuple[str, str], TableBinding] = {}

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
    feed: Feed | None = getattr(dataset, "feed", None)
    if feed is None or feed.connection is None:
        raise CannotRead(f"{_why_no_table(dataset)}.")
    return _binding(dataset, _source_target(feed, feed.connection), feed.connection.name)


def _why_no_table(dataset: Dataset) -> str:
    """Of what no connection feeds."""
    feed: Feed | None = getattr(dataset, "feed", None)
    return f"{dataset.name} comes from {feed.address}, which is not a table" if feed else f"{dataset.name} has no feed"


def _binding(dataset: Dataset, target: Target, connection: str = "") -> TableBinding:
    return TableBinding(target, dataset.partition_column, dataset.partition_grain, dataset.zone, connection)


def _source_target(feed: Feed, connection: Connection) -> Target:
    if connection.plugin == "sql":
        return SqlTable(connection.url, feed.object)
    address = f"{connection.url.rstrip('/')}/{feed.object}"
    if connection.plugin == "hudi":
        return HudiCopy(address)
    ending = PurePosixPath(feed.object).suffix
    return Files(address, _FILE_FORMATS.get(ending, ending.lstrip(".")))
