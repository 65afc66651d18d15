"""Which dataset, or which table of which connection, the name of a table in lineage means."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from lakehub.catalog.lineage import TableName
from lakehub.catalog.lineage.lake_tables import table_in_lake
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, Feed
from lakehub.catalog.storages import Storage

OWN_NAMESPACE = "lakehub"
"""The namespace whose names are datasets."""


class Resolver:
    """Made from the catalog once, for many names. The namespace may be a connection's own name, or OpenLineage's for it."""

    def __init__(self) -> None:
        self._storages = [
            (connection, _storage_or_none(connection)) for connection in Connection.objects.order_by("name")
        ]
        live = Dataset.objects.filter(offboarded_at=None)
        self._by_name = {dataset.name: dataset for dataset in live}
        self._at_connection = {
            (connection, table): self._by_name[name]
            for model in (DatasetCopy, Feed)
            for connection, table, name in model._default_manager.filter(
                dataset__in=live, connection__isnull=False
            ).values_list("connection_id", "object", "dataset__name")
        }
        copies = DatasetCopy.objects.filter(dataset__in=live).exclude(uri="").values_list("uri", "dataset__name")
        # Where a lake is mounted as a file system, its tables are called by their paths alone, whatever its URI is.
        by_path = {TableName("file", _path_of_uri(uri)): self._by_name[name] for uri, name in copies}
        self._in_lake = by_path | {table_in_lake(uri): self._by_name[name] for uri, name in copies}

    def table(self, table_name: TableName) -> tuple[Connection | None, str]:
        """The connection that reads it, and what it calls it."""
        for connection, storage in self._storages:
            if object_name := _object_name(connection, storage, table_name):
                return connection, object_name
        return None, ""

    def dataset(self, table_name: TableName) -> Dataset | None:
        if table_name.namespace == OWN_NAMESPACE:
            return self._by_name.get(table_name.name)
        in_lake = self._in_lake.get(TableName(table_name.namespace, table_name.name.rstrip("/")))
        if in_lake is not None:
            return in_lake
        connection, table = self.table(table_name)
        return None if connection is None else self._at_connection.get((connection.pk, table))


def _storage_or_none(connection: Connection) -> Storage | None:
    """Made once, for many names. None where the package that brings it is not installed."""
    try:
        return connection.storage
    except MetadataUnavailable:
        return None


def _object_name(connection: Connection, storage: Storage | None, table_name: TableName) -> str:
    """Empty also where it is not certain where the connection leads: it is found by its own name only."""
    if table_name.namespace == connection.name:
        return table_name.name
    try:
        return "" if storage is None else storage.table_in_lineage(table_name.namespace, table_name.name)
    except MetadataUnavailable:
        return ""


def _path_of_uri(uri: str) -> str:
    return unquote(urlsplit(uri).path).rstrip("/")
