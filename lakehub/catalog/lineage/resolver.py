"""Which dataset, or which table of which connection, the name of a table in lineage means."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from lakehub.catalog.lineage import TableName
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, Feed

OWN_NAMESPACE = "lakehub"
"""The namespace whose names are datasets."""
_SCHEMES = {"postgresql": "postgres", "mariadb": "mysql"}
_PORTS = {"postgres": 5432, "mysql": 3306}


class Resolver:
    """Made from the catalog once, for many names. The namespace may be a connection's own name, or OpenLineage's for it."""

    def __init__(self) -> None:
        self._connections = list(Connection.objects.order_by("name"))
        live = Dataset.objects.filter(offboarded_at=None)
        self._by_name = {dataset.name: dataset for dataset in live}
        feeds = Feed.objects.filter(dataset__in=live, connection__isnull=False).values_list(
            "connection_id", "object", "dataset__name"
        )
        self._fed = {(connection, table): self._by_name[name] for connection, table, name in feeds}
        copies = DatasetCopy.objects.filter(dataset__in=live).exclude(uri="").values_list("uri", "dataset__name")
        self._in_lake = {_path_of_uri(uri): self._by_name[name] for uri, name in copies}

    def table(self, table_name: TableName) -> tuple[Connection | None, str]:
        """The connection that reads it, and what it calls it."""
        for connection in self._connections:
            object_name = (
                table_name.name
                if table_name.namespace == connection.name
                else _object_in_connection(connection, table_name)
            )
            if object_name:
                return connection, object_name
        return None, ""

    def dataset(self, table_name: TableName) -> Dataset | None:
        if table_name.namespace == OWN_NAMESPACE:
            return self._by_name.get(table_name.name)
        if table_name.namespace == "file" and table_name.name.rstrip("/") in self._in_lake:
            return self._in_lake[table_name.name.rstrip("/")]
        connection, table = self.table(table_name)
        return None if connection is None else self._fed.get((connection.pk, table))


def _object_in_connection(connection: Connection, table_name: TableName) -> str:
    """The table as the connection calls it, where OpenLineage's namespace is the connection's; else nothing."""
    if connection.plugin != "sql":
        folder = PurePosixPath(_path_of_uri(connection.url))
        inside = table_name.namespace == "file" and PurePosixPath(table_name.name).is_relative_to(folder)
        return str(PurePosixPath(table_name.name).relative_to(folder)) if inside else ""
    namespace, database = openlineage_address(connection.url)
    in_database, _, table = table_name.name.partition(".")
    if not namespace or table_name.namespace != namespace or in_database != database:
        return ""
    return table.removeprefix("public.") if namespace.startswith("postgres:") else table


def openlineage_address(url: str) -> tuple[str, str]:
    """(`postgres://host:5432`, `database`): OpenLineage's name for a server. Empty for a database without one."""
    parts = urlsplit(url)
    kind = parts.scheme.partition("+")[0]
    scheme = _SCHEMES.get(kind, kind)
    if not parts.hostname:
        return "", ""
    port = parts.port or _PORTS.get(scheme)
    return f"{scheme}://{parts.hostname}{f':{port}' if port else ''}", parts.path.strip("/")


def _path_of_uri(uri: str) -> str:
    return unquote(urlsplit(uri).path).rstrip("/")
