"""The storages: where tables lie that Lakehub reads. What each knows of its tables, and in which form engines read them.

To add one: write a file here with a class that fits `Storage`, add its line to STORAGES and its row to
tests/contracts/test_storages.py. From outside the tree: an entry point of the group `lakehub.storages`. A storage is made from
a URL, never writes, and knows no Django. Rows are brought into the lake by a source of the same name (ingestion.sources).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, TypeAlias
from urllib.parse import unquote, urlsplit

from lakehub.catalog.metadata import KeyEvidence, MetadataUnavailable, NewestValues, SampleRows, TableMetadata
from lakehub.catalog.metadata.roles import DatabaseRole
from lakehub.catalog.metadata.table_locations import (
    LocalTable,
    NamedTable,
    ServerTable,
    TableLocation,
    server_addresses,
)
from lakehub.catalog.metadata.tables import StoredTable
from lakehub.kernel.registry import Registry, UnknownPlugin


@dataclass(frozen=True)
class LocalPath:
    """A file of this machine, or a folder with all that is below it."""

    path: Path
    is_folder: bool = True


@dataclass(frozen=True)
class ServerDatabase:
    """A database of a server, or what else a server keeps; `port` is empty where the URL leaves it to the driver.

    `certificates`: files of this machine that are read to know the server by.
    """

    host: str
    port: str
    name: str
    certificates: tuple[Path, ...] = ()
    more_hosts: tuple[str, ...] = ()
    """Which the URL names besides."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return (self.host, *self.more_hosts)


@dataclass(frozen=True)
class UncertainLocation:
    """Somewhere: the URL may lead elsewhere than it seems. `reason` is for people."""

    reason: str


Location: TypeAlias = LocalPath | ServerDatabase | UncertainLocation
"""Where a URL leads, for whoever guards what may be read."""


DATABASE_IDENTITIES = tuple(
    f"SELECT {server} || ' ' || oid FROM pg_database WHERE datname = current_database()"  # noqa: S608  # constants
    for server in (
        "(SELECT 'cluster ' || system_identifier FROM pg_control_system())",
        "'started ' || extract(epoch FROM pg_postmaster_start_time())",
    )
)
"""Asked of a PostgreSQL: which database of which server it is, whatever name and port it is reached by. The first holds for
replicas too, and may be withheld; the second is told to everybody."""


class Storage(ABC):
    """Raises MetadataUnavailable where it cannot be reached."""

    is_lake: ClassVar[bool] = False
    """Its tables have commits, as those have that Lakehub writes itself: when one was written last is read from the table."""
    is_captured: ClassVar[bool] = False
    """Changes of its tables are captured from the log of its server, and not looked for in the tables."""
    takes_patterns: ClassVar[bool] = False
    """Its tables are onboarded by a pattern of their names: they say their keys, and nothing else needs to be said of each."""
    can_hide_columns: ClassVar[bool] = False
    """Of a table that is captured from it, columns can be left out, hashed or masked."""
    lands_chunks: ClassVar[bool] = False
    """What a load reads of its tables is kept for a while, and can be loaded again from there."""
    is_stream: ClassVar[bool] = False
    """Its tables are streams of messages: no engine reads them, and their columns are those of some messages, so that others may have more."""
    has_cells: ClassVar[bool] = False
    """Its tables hold cells, each of which is a part of a row: columns, keys and types are those of the rows that they make."""
    table_hint: ClassVar[str] = ""
    """What a person may write for a table besides a name that is listed; part of a sentence."""
    empty_hint: ClassVar[str] = "Check that the account may see the tables that you need."
    """Why it may list no table, for people: what to do."""
    url_example: ClassVar[str] = ""
    """A URL of the form that it takes, for people."""

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def tables(self, limit: int) -> Sequence[str]:
        """Names that the other methods take, sorted."""

    @abstractmethod
    def describe(self, table: str) -> TableMetadata:
        """Raises NoSuchTable, or MetadataUnavailable where that cannot be known."""

    @abstractmethod
    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        """How well `key` holds: on all rows where there are at most EVIDENCE_LIMIT, else on a sample that says how it was drawn."""

    def newest_values(self, table: str, columns: Sequence[str], limit: int) -> NewestValues:
        """At most `limit` different values of the columns together, of all rows, or of the first VALUES_LIMIT, which it says then.

        Empty where the storage does not know.
        """
        return NewestValues()

    def sample_rows(self, table: str, described: TableMetadata, limit: int) -> SampleRows:
        """At most `limit` rows of the table that was described so; none where the storage does not show any."""
        return described.sample[:limit]

    @abstractmethod
    def table(self, table: str) -> StoredTable:
        """In the form in which an engine reads it; nothing is looked up."""

    @abstractmethod
    def location(self) -> Location:
        """Where the URL leads, by the same reading of it by which data is read there: the guard of connections asks.

        Raises MetadataUnavailable where that is not certain; nothing of a password is in its message.
        """

    def database_identities(self) -> frozenset[str]:
        """What the server itself says it is, to be compared with what Lakehub's own database says. Raises MetadataUnavailable."""
        return frozenset()

    def advertised_hosts(self) -> Sequence[str]:
        """Hosts to which the server itself sends whoever has reached it. Raises MetadataUnavailable."""
        return ()

    def table_location(self, table: str) -> TableLocation:
        """Where the rows lie: equal for two names of one table, also of two URLs. Reads no rows.

        Raises MetadataUnavailable where it takes a look that fails.
        """
        place = self.location()
        if isinstance(place, LocalPath):
            return LocalTable(frozenset({os.path.realpath(place.path)}), table)
        if isinstance(place, ServerDatabase):
            return ServerTable(server_addresses(place.host), place.port, (place.name, table))
        return NamedTable(self.url, table)

    def role(self) -> DatabaseRole | None:
        """What the role of the URL may do besides reading, where its database has roles and says so; else None."""
        return None

    def table_in_lineage(self, namespace: str, name: str) -> str:
        """What this storage calls the table that OpenLineage names so; empty where it is none of this URL.

        Raises MetadataUnavailable as `location` does.
        """
        place = self.location()
        if namespace != "file" or not isinstance(place, LocalPath):
            return ""
        path, folder = PurePosixPath(name), PurePosixPath(place.path)
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else ""


STORAGES: Registry[type[Storage]] = Registry(
    "storage",
    {
        "sql": "lakehub.catalog.storages.sql:SqlStorage",
        "mysql": "lakehub.catalog.storages.sql.mysql:MySqlStorage",
        "kafka": "lakehub.catalog.storages.kafka:KafkaStorage",
        "schemaless": "lakehub.catalog.storages.sql.schemaless:SchemalessStorage",
        "files": "lakehub.catalog.storages.files:FilesStorage",
        "hudi": "lakehub.catalog.storages.hudi:HudiStorage",
    },
    group="lakehub.storages",
)
"""By the plug-in name of a connection."""


def _of(plugin: str) -> type[Storage]:
    """Of one that is not installed (any more) nothing is true that is asked below."""
    try:
        return STORAGES.get(plugin)
    except UnknownPlugin:
        return Storage


def is_lake(plugin: str | None) -> bool:
    """Whether tables of this storage have commits; not of no connection."""
    return plugin is not None and _of(plugin).is_lake


def lake_plugins() -> list[str]:
    """The names of those that can be used."""
    return [name for name, storage in STORAGES.usable() if storage.is_lake]


def takes_patterns(plugin: str) -> bool:
    return _of(plugin).takes_patterns


def is_captured(plugin: str) -> bool:
    """Whether changes come from the log of the server."""
    return _of(plugin).is_captured


def lands_chunks(plugin: str) -> bool:
    return _of(plugin).lands_chunks


def is_stream(plugin: str) -> bool:
    return _of(plugin).is_stream


def can_hide_columns(plugin: str) -> bool:
    return _of(plugin).can_hide_columns


def has_cells(plugin: str) -> bool:
    """Whether a row is made of several rows of its table."""
    return _of(plugin).has_cells


def table_hint(plugin: str) -> str:
    return _of(plugin).table_hint


def empty_hint(plugin: str) -> str:
    try:
        return STORAGES.get(plugin).empty_hint
    except UnknownPlugin:
        return ""


def url_examples() -> list[tuple[str, str]]:
    """(name, URL) of each storage that can be used."""
    return [(name, storage.url_example) for name, storage in STORAGES.usable()]


def local_path(url: str, scheme: str = "file") -> Path:
    """The path of a URL such as file:///data. Raises MetadataUnavailable for any other form, which others may read otherwise."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    path = unquote(parts.path)
    if (
        parts.scheme != scheme
        or parts.netloc
        or "#" in url
        or "?" in url
        or not path.startswith("/")
        or not (url + path).isprintable()
    ):
        raise MetadataUnavailable(
            f"The URL is not that of a folder of this machine. Write {scheme}:///data; in a name %23 for # and %3F for ?."
        )
    return Path(path)
