"""Tables of any database that SQLAlchemy speaks to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchModuleError, NoSuchTableError, SQLAlchemyError

from lakehub.catalog.metadata import (
    EVIDENCE_LIMIT,
    ColumnMetadata,
    ColumnType,
    KeyEvidence,
    MetadataUnavailable,
    NoSuchTable,
    TableMetadata,
)
from lakehub.catalog.metadata.tables import SqlTable
from lakehub.catalog.storages import Location, Storage
from lakehub.catalog.storages.sql.urls import database_location, openlineage_address, parse_url
from lakehub.kernel.addresses import redacted_url
from lakehub.kernel.suggest import did_you_mean

_COLUMN_TYPES: tuple[tuple[type[sa.types.TypeEngine[Any]], ColumnType], ...] = (
    (sa.Boolean, ColumnType.BOOLEAN),
    (sa.Integer, ColumnType.INTEGER),
    (sa.Float, ColumnType.FLOAT),
    (sa.Numeric, ColumnType.DECIMAL),
    (sa.DateTime, ColumnType.TIMESTAMP),
    (sa.Date, ColumnType.DATE),
    (sa.LargeBinary, ColumnType.BINARY),
    (sa.String, ColumnType.STRING),
)


class SqlStorage(Storage):
    """`url` is an SQLAlchemy URL; a table is `name` or `schema.name`."""

    def tables(self, limit: int) -> Sequence[str]:
        with self._connected() as connection:
            return sorted(sa.inspect(connection).get_table_names())[:limit]

    def describe(self, table: str) -> TableMetadata:
        schema, name = _split_schema(table)
        with self._connected() as connection:
            inspector = sa.inspect(connection)
            try:
                inspected_columns = inspector.get_columns(name, schema=schema)
            except NoSuchTableError:
                near = did_you_mean(name, inspector.get_table_names(schema=schema))
                raise NoSuchTable(f"There is no table `{table}` at {redacted_url(self.url)}.{near}") from None
            key = inspector.get_pk_constraint(name, schema=schema)["constrained_columns"]
        columns = tuple(
            ColumnMetadata(c["name"], _column_type(c["type"]), bool(c.get("nullable", True))) for c in inspected_columns
        )
        return TableMetadata(columns, tuple(key))

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        schema, name = _split_schema(table)
        parts: list[sa.ColumnClause[Any]] = [sa.column(part) for part in key]
        some = sa.select(*parts).select_from(sa.table(name, schema=schema)).limit(EVIDENCE_LIMIT).subquery()
        columns = [some.c[part] for part in key]
        whole = sa.and_(*(column.is_not(None) for column in columns))
        distinct = sa.select(sa.func.count()).select_from(sa.select(*columns).where(whole).distinct().subquery())
        full_count = sa.func.coalesce(sa.func.sum(sa.case((whole, 1), else_=0)), 0)
        with self._connected() as connection:
            rows, full = connection.execute(sa.select(sa.func.count(), full_count).select_from(some)).one()
            return KeyEvidence(rows, connection.execute(distinct).scalar_one(), rows - int(full))

    def table(self, table: str) -> SqlTable:
        return SqlTable(self.url, table)

    def location(self) -> Location:
        return database_location(self.url)

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
        try:
            with self._open() as connection:
                yield connection
        except (NoSuchModuleError, ImportError) as error:
            raise MetadataUnavailable(f"This kind of database has no driver here: {error}.") from None
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise MetadataUnavailable(
                f"The database at {redacted_url(self.url)} cannot be read: {cause}. Check its URL, and that it is up."
            ) from error

    def _open(self) -> sa.Connection:
        url = parse_url(self.url)
        try:
            return sa.create_engine(url, poolclass=sa.NullPool, **_read_only_options(url)).connect()
        except (ValueError, TypeError, LookupError, AttributeError) as error:  # what drivers raise for a bad parameter
            raise MetadataUnavailable(
                f"The driver does not understand {redacted_url(self.url)} ({type(error).__name__}). "
                "Check the parameters behind its `?`."
            ) from None


def _read_only_options(url: sa.URL) -> dict[str, object]:
    """SQLite would make an empty database of a mistyped path; open what is there, read only."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return {}
    import sqlite3

    uri = f"{Path(url.database).absolute().as_uri()}?mode=ro"
    return {"creator": lambda: sqlite3.connect(uri, uri=True, timeout=30)}


def _split_schema(table: str) -> tuple[str | None, str]:
    schema, dot, name = table.rpartition(".")
    return (schema, name) if dot else (None, table)


def _column_type(sql_type: sa.types.TypeEngine[Any]) -> ColumnType:
    return next((column_type for kind, column_type in _COLUMN_TYPES if isinstance(sql_type, kind)), ColumnType.OTHER)
