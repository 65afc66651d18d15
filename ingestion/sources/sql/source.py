"""Any database that SQLAlchemy reaches: a snapshot is one statement, the changes are the rows at or after a watermark.

Deleted rows are not seen by a watermark. A transaction that commits late with an early watermark is, within `overlap_s`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema, SchemaColumn, UnknownColumn
from ingestion.sources import Chunk, SourceConfig, SourceError, SourceReading
from ingestion.sources.sql.watermark import ContentDigest, WatermarkTracker
from lakehub.kernel.addresses import redacted_url
from lakehub.kernel.suggest import did_you_mean
from lakehub.source_databases.engine import CannotOpen, SourceConnection, open_database
from lakehub.source_databases.timeouts import Timeouts
from lakehub.source_databases.urls import UnusableUrl, read_url

TIMEOUTS = Timeouts(silence=timedelta(minutes=5))
"""A large table may take a while until its first rows come, or its count."""


class SqlSource:
    def __init__(self, config: SourceConfig) -> None:
        self._config = config
        _check_url(config.url)

    def schema(self) -> Schema:
        return self._schema

    def snapshot(
        self, *, upto: datetime | None = None, only: Mapping[str, Sequence[str]] | None = None
    ) -> SourceReading:
        self._schema.require(only or (), self._display_name)
        chosen = [
            sa.column(name).in_([_parse_literal(text, self._schema.types[name]) for text in values])
            for name, values in (only or {}).items()
        ]
        statement = self._select().where(*chosen)
        reading = self._reading(statement, self._position_tracker(None, upto))
        return replace(reading, total=lambda: self._count(statement))

    def changes(self, position: Position, *, upto: datetime | None = None) -> SourceReading:
        keeper = self._position_tracker(position, upto)
        if not isinstance(keeper, WatermarkTracker) or keeper.highest is None:
            return self._reading(self._select(), keeper)
        if keeper.boundary_digest is not None:
            return SourceReading(
                self._chunks_above_boundary(keeper), keeper.position, unusable_cursors=keeper.unusable_cursors
            )
        cursor = self._cursor
        return self._reading(self._select().where(sa.or_(cursor >= keeper.read_from(), cursor.is_(None))), keeper)

    def _chunks_above_boundary(self, keeper: WatermarkTracker) -> Iterator[Chunk]:
        """What is above the watermark; the many rows just up to it only where they are no longer the same."""
        cursor, at, lower = self._cursor, keeper.highest, keeper.read_from()
        yield from self._chunks(self._select().where(sa.or_(cursor > at, cursor.is_(None))), keeper)
        looked, those = keeper.fork(), self._select().where(cursor >= lower, cursor <= at)
        for rows in self._rows(those):
            for row in rows:
                looked.admit(row)
        if not keeper.reuse_boundary_if_unchanged(looked):
            yield from self._chunks(those, keeper)

    def _position_tracker(self, start: Position | None, upto: datetime | None) -> WatermarkTracker | ContentDigest:
        cursor = self._config.cursor_column
        if cursor is None:
            return ContentDigest(start)
        self._schema.require([cursor], self._display_name)
        timed = self._schema.types[cursor] in ("timestamp", "date")
        return WatermarkTracker(
            self._schema.names.index(cursor),
            timed or _is_text(self._schema.types[cursor]),
            start,
            upto,
            timedelta(seconds=self._config.overlap_s),
        )

    def _reading(self, statement: sa.Select[Any], keeper: WatermarkTracker | ContentDigest) -> SourceReading:
        chunks = self._chunks(statement, keeper)
        if isinstance(keeper, ContentDigest):
            return SourceReading(chunks, keeper.position, keeper.is_unchanged)
        return SourceReading(chunks, keeper.position, unusable_cursors=keeper.unusable_cursors)

    def _chunks(self, statement: sa.Select[Any], keeper: WatermarkTracker | ContentDigest) -> Iterator[Chunk]:
        names = self._schema.names
        for rows in self._rows(statement):
            admitted_rows = [row for row in rows if keeper.admit(row)]
            if admitted_rows:
                yield Chunk(dict(zip(names, zip(*admitted_rows, strict=True), strict=True)))

    def _rows(self, statement: sa.Select[Any]) -> Iterator[Sequence[sa.Row[Any]]]:
        """Chunk by chunk; each comes in time, the whole may take as long as it has rows."""
        with self._opened() as source:
            options = {"stream_results": True, "max_row_buffer": self._config.chunk_rows}
            with source.at_most(TIMEOUTS.silence):
                chunks = source.connection.execute(statement, execution_options=options).partitions(
                    self._config.chunk_rows
                )
            while True:
                with source.at_most(TIMEOUTS.silence):
                    rows = next(chunks, None)
                if rows is None:
                    return
                yield rows

    def _count(self, statement: sa.Select[Any]) -> int:
        counting = sa.select(sa.func.count()).select_from(statement.subquery())
        with self._opened() as source, source.at_most(TIMEOUTS.silence):
            counted: int = source.connection.execute(counting).scalar_one()
        return counted

    @property
    def _cursor(self) -> sa.ColumnClause[Any]:
        return sa.column(str(self._config.cursor_column))

    def _select(self) -> sa.Select[Any]:
        """Columns without a type: values come as the driver has them, and a bad one cannot stop the reading."""
        schema, name = self._schema_and_table
        columns: list[sa.ColumnClause[Any]] = [sa.column(column_name) for column_name in self._schema.names]
        statement: sa.Select[Any] = sa.select(*columns)
        return statement.select_from(sa.table(name, schema=schema))

    @cached_property
    def _schema(self) -> Schema:
        schema, name = self._schema_and_table
        with self._opened() as source, source.at_most(TIMEOUTS.silence):
            inspector = sa.inspect(source.connection)
            known_names = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
            if name not in known_names:
                raise SourceError(
                    f"The database has no table `{self._config.object}`.{did_you_mean(name, known_names)}"
                )
            columns = inspector.get_columns(name, schema)
        return Schema(tuple(SchemaColumn(column["name"], _type_name(column["type"])) for column in columns))

    @property
    def _schema_and_table(self) -> tuple[str | None, str]:
        schema, _, name = self._config.object.rpartition(".")
        return schema or None, name

    @property
    def _display_name(self) -> str:
        return f"The table `{self._config.object}`"

    @contextmanager
    def _opened(self) -> Iterator[SourceConnection]:
        """Database errors in words that name the source, without its password."""
        try:
            with open_database(self._config.url, TIMEOUTS) as source:
                yield source
        except (CannotOpen, DBAPIError, OSError) as problem:
            cause = problem.orig if isinstance(problem, DBAPIError) else problem
            raise SourceError(
                f"The source {redacted_url(self._config.url)} cannot be read: {cause}. Check that it is up, and the connection's URL and rights."
            ) from problem
        except (SourceError, UnknownColumn):
            raise
        except SQLAlchemyError as problem:
            raise SourceError(f"The source {redacted_url(self._config.url)} cannot be read: {problem}.") from problem


def _check_url(url: str) -> None:
    """Raises SourceError for what is not opened, and for a database file that is not there."""
    try:
        target = read_url(url)
    except UnusableUrl as unusable:
        raise SourceError(f"The connection's URL is not opened: {unusable}") from None
    if target.driver.has_file and not target.file.is_file():
        raise SourceError(
            f"There is no SQLite database at {target.file}. Check the path; an absolute one has four slashes, sqlite:////path/file.db."
        )


_TYPE_NAMES: tuple[tuple[type[sa.types.TypeEngine[Any]], str], ...] = (
    (sa.Boolean, "boolean"),
    (sa.SmallInteger, "int"),
    (sa.Integer, "long"),
    (sa.Float, "double"),
    (sa.DateTime, "timestamp"),
    (sa.Date, "date"),
    (sa.LargeBinary, "binary"),
)


def _type_name(sql_type: sa.types.TypeEngine[Any]) -> str:
    """What has no twin (JSON, arrays, intervals) is kept as text."""
    if isinstance(sql_type, sa.Numeric) and not isinstance(sql_type, sa.Float):
        return (
            f"decimal({sql_type.precision},{sql_type.scale or 0})"
            if sql_type.precision and sql_type.precision <= 38
            else "double"
        )
    return next((name for kind, name in _TYPE_NAMES if isinstance(sql_type, kind)), "string")


def _parse_literal(text: str, type_: str) -> object:
    if type_ == "date":
        return date.fromisoformat(text)
    return int(text) if type_ in ("int", "long") else text


def _is_text(type_: str) -> bool:
    return type_ == "string"
