"""Tables of any database that SQLAlchemy speaks to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError, ProgrammingError, SQLAlchemyError

from lakehub.catalog.metadata import (
    VALUES_LIMIT,
    ColumnMetadata,
    ColumnType,
    KeyEvidence,
    MetadataUnavailable,
    NewestValues,
    NoSuchTable,
    SampleRows,
    StorageUnreachable,
    TableMetadata,
)
from lakehub.catalog.metadata.roles import DatabaseRole
from lakehub.catalog.metadata.table_locations import TableLocation
from lakehub.catalog.metadata.tables import SqlTable, StoredTable
from lakehub.catalog.storages import DATABASE_IDENTITIES, Location, Storage
from lakehub.catalog.storages.sql.evidence import read_key_evidence
from lakehub.catalog.storages.sql.looks import place_for_a_look
from lakehub.catalog.storages.sql.role import read_role
from lakehub.catalog.storages.sql.samples import read_sample_rows
from lakehub.catalog.storages.sql.urls import database_location, openlineage_address, parse_url, table_location
from lakehub.kernel.addresses import redacted_url
from lakehub.kernel.suggest import did_you_mean
from lakehub.source_databases.binary_types import BINARY_TYPES
from lakehub.source_databases.engine import CannotOpen, open_database
from lakehub.source_databases.timeouts import Timeouts
from lakehub.source_databases.urls import MARIADB_BACKENDS

_COLUMN_TYPES: tuple[tuple[type[sa.types.TypeEngine[Any]], ColumnType], ...] = (
    (sa.Boolean, ColumnType.BOOLEAN),
    (sa.Integer, ColumnType.INTEGER),
    (sa.Float, ColumnType.FLOAT),
    (sa.Numeric, ColumnType.DECIMAL),
    (sa.DateTime, ColumnType.TIMESTAMP),
    (sa.Date, ColumnType.DATE),
    *((kind, ColumnType.BINARY) for kind in BINARY_TYPES),
    (sa.ARRAY, ColumnType.ARRAY),
    (sa.JSON, ColumnType.JSON),
    (sa.Time, ColumnType.TIME),
    (sa.String, ColumnType.STRING),
)

TIMEOUTS = Timeouts(silence=timedelta(seconds=60))
"""A look is short: somebody may be waiting for it."""


class SqlStorage(Storage):
    """`url` is an SQLAlchemy URL; a table is `name` or `schema.name`."""

    empty_hint = "Check that the account may see the tables that you need; those of another schema are named with it, as in sales.orders."
    url_example = "postgresql+psycopg://reader:password@db.example.org:5432/ops"

    def tables(self, limit: int) -> Sequence[str]:
        with self._connected() as connection:
            return sorted(sa.inspect(connection).get_table_names())[:limit]

    def describe(self, table: str) -> TableMetadata:
        schema, name = split_schema(table)
        with self._connected() as connection:
            inspector = sa.inspect(connection)
            try:
                inspected_columns = inspector.get_columns(name, schema=schema)
            except NoSuchTableError:
                near = did_you_mean(name, inspector.get_table_names(schema=schema))
                raise NoSuchTable(f"There is no table `{table}` at {redacted_url(self.url)}.{near}") from None
            key = inspector.get_pk_constraint(name, schema=schema)["constrained_columns"]
            named = partial(_plain_name, connection)
        columns = tuple(
            ColumnMetadata(named(each["name"]), _column_type(each["type"]), bool(each.get("nullable", True)))
            for each in inspected_columns
        )
        return TableMetadata(columns, tuple(map(named, key)))

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        with self._connected() as connection:
            return read_key_evidence(connection, *split_schema(table), key)

    def newest_values(self, table: str, columns: Sequence[str], limit: int) -> NewestValues:
        """With the types that the database reports, so that times come as such from every driver.

        Of the first rows that it gives: without an index a server at work would read the whole table.
        """
        schema, name = split_schema(table)
        with self._connected() as connection:
            inspected_columns = sa.inspect(connection).get_columns(name, schema=schema)
            types = {_plain_name(connection, each["name"]): each["type"] for each in inspected_columns}
            clauses: list[sa.ColumnClause[Any]] = [sa.column(column, types[column]) for column in columns]
            read_from = sa.table(name, schema=schema)
            some = sa.select(*clauses).select_from(read_from).limit(VALUES_LIMIT).subquery()
            parts = [some.c[column] for column in columns]
            whole = sa.and_(*(part.is_not(None) for part in parts))
            newest = sa.select(*parts).where(whole).distinct().order_by(*(part.desc() for part in parts)).limit(limit)
            values = [tuple(row) for row in connection.execute(newest)]
            return NewestValues(values, VALUES_LIMIT if _has_more_rows(connection, read_from, VALUES_LIMIT) else None)

    def sample_rows(self, table: str, described: TableMetadata, limit: int) -> SampleRows:
        with self._connected() as connection:
            return read_sample_rows(connection, *split_schema(table), described, limit)

    def table(self, table: str) -> StoredTable:
        return SqlTable(self.url, table)

    def role(self) -> DatabaseRole | None:
        with self._connected() as connection:
            return read_role(connection)

    def location(self) -> Location:
        return database_location(self.url)

    def database_identities(self) -> frozenset[str]:
        """Only PostgreSQL is asked: Lakehub's own database is never another server's."""
        if parse_url(self.url).driver.backend != "postgresql":
            return frozenset()
        identities = set[str]()
        with self._connected() as connection:
            for question in DATABASE_IDENTITIES:
                try:
                    identities.add(str(connection.scalar(sa.text(question))))
                except ProgrammingError:  # not for this account
                    connection.rollback()
        return frozenset(identities)

    def table_location(self, table: str) -> TableLocation:
        """Only PostgreSQL is asked, for the schema in which it looks for a table whose name says none."""
        url = parse_url(self.url)
        if url.driver.backend != "postgresql" or "." in table:
            return table_location(url, table)
        with self._connected() as connection:
            schema = sa.inspect(connection).default_schema_name
        return table_location(url, f"{schema or 'public'}.{table}")

    def table_in_lineage(self, namespace: str, name: str) -> str:
        server, database = self._openlineage_address
        in_database, _, table = name.partition(".")
        if not server or namespace != server or in_database != database:
            return ""
        return table.removeprefix("public.") if server.startswith("postgres:") else table

    @cached_property
    def _openlineage_address(self) -> tuple[str, str]:
        return openlineage_address(self.url)

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        parse_url(self.url)
        try:
            with place_for_a_look(), open_database(self.url, TIMEOUTS) as source, source.at_most(TIMEOUTS.silence):
                yield source.connection
        except (CannotOpen, SQLAlchemyError) as error:
            cause = getattr(error, "orig", None) or error
            kind = StorageUnreachable if isinstance(error, CannotOpen) else MetadataUnavailable
            raise kind(
                f"The database at {redacted_url(self.url)} cannot be read: {cause}. Check its URL, and that it is up."
            ) from error


def _has_more_rows(connection: sa.Connection, table: sa.TableClause, number: int) -> bool:
    """Than `number`; no more than one beyond it are counted."""
    some = sa.select(sa.literal_column("1").label("row_read")).select_from(table).limit(number + 1).subquery()
    return connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one() > number


def _plain_name(connection: sa.Connection, name: str) -> str:
    """As it is: those that the driver reads from a definition of MariaDB have each backquote twice."""
    return name.replace("``", "`") if connection.dialect.name in MARIADB_BACKENDS else name


def split_schema(table: str) -> tuple[str | None, str]:
    schema, dot, name = table.rpartition(".")
    return (schema, name) if dot else (None, table)


def _column_type(sql_type: sa.types.TypeEngine[Any]) -> ColumnType:
    return next((column_type for kind, column_type in _COLUMN_TYPES if isinstance(sql_type, kind)), ColumnType.OTHER)
