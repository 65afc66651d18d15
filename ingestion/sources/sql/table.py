"""One table or view of a database that SQLAlchemy reaches: its columns, and its rows page by page."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ingestion.domain.schema import Schema, SchemaColumn, UnknownColumn
from ingestion.sources import SourceConfig, SourceError
from ingestion.sources.sql.column_types import SqlType, is_compared_as_read, type_name_of
from ingestion.sources.sql.driver_values import keep_bad_texts_as_bytes, keep_json_as_text, keep_times_beyond_python
from lakehub.kernel.addresses import redacted_url
from lakehub.kernel.suggest import did_you_mean
from lakehub.source_databases.engine import CannotOpen, SourceConnection, open_database
from lakehub.source_databases.timeouts import Timeouts
from lakehub.source_databases.urls import DatabaseUrl, UnusableUrl, read_url

logger = logging.getLogger(__name__)
TIMEOUTS = Timeouts(silence=timedelta(minutes=5))
"""A large table may take a while until its first rows come."""
_COUNT_LIMIT = timedelta(minutes=1)


class Page(NamedTuple):
    """`names`: the columns of each row, as the database has them at this moment."""

    names: tuple[str, ...]
    rows: Sequence[sa.Row[Any]]


class SqlTable:
    def __init__(self, config: SourceConfig) -> None:
        self._config = config
        target = _checked_target(config.url)
        self.is_file = target.driver.has_file
        """SQLite: it compares texts by their code points, as Python does, unless a column says otherwise."""

    @cached_property
    def schema(self) -> Schema:
        return Schema(tuple(SchemaColumn(name, type_name_of(type_)) for name, type_ in self._sql_types.items()))

    def is_compared_as_read(self, name: str) -> bool:
        """May a value of a text column be handed back, to read on after it in the order of the database?"""
        return self.is_file or is_compared_as_read(self._sql_types[name])

    @cached_property
    def _sql_types(self) -> dict[str, SqlType]:
        schema, name = self._schema_and_table
        with self._opened() as source, source.at_most(TIMEOUTS.silence):
            inspector = sa.inspect(source.connection)
            known_names = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
            if name not in known_names:
                raise SourceError(
                    f"The database has no table `{self._config.object}`.{did_you_mean(name, known_names)}"
                )
            columns = inspector.get_columns(name, schema)
        return {column["name"]: column["type"] for column in columns}

    def require_column(self, name: str) -> None:
        """Raises UnknownColumn."""
        self.schema.require([name], self.display_name)

    def select(self, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
        """All columns that the table shows, unless some are given. They have no type: values come as the driver has them, and a bad one cannot
        stop the reading."""
        schema, name = self._schema_and_table
        statement: sa.Select[Any] = sa.select(*(columns or (sa.literal_column("*"),)))
        return statement.select_from(sa.table(name, schema=schema))

    def pages(self, statement: sa.Select[Any]) -> Iterator[Page]:
        """Each comes in time; the whole may take as long as it has rows, and as its reader lets it."""
        with closing(self._streamed_pages(statement)) as pages:
            for page in pages:
                # Out of the block whose errors are the database's: what the reader raises is not.
                self._config.on_rows_read(len(page.rows))
                yield page

    def _streamed_pages(self, statement: sa.Select[Any]) -> Generator[Page, None, None]:
        with self._opened() as source:
            # Not for what SQLAlchemy asks about the table, which comes as JSON and is for it to read.
            keep_json_as_text(source.connection)
            options = {"stream_results": True, "max_row_buffer": self._config.chunk_rows}
            with source.at_most(TIMEOUTS.silence):
                result = source.connection.execute(statement, execution_options=options)
                names, pages = tuple(result.keys()), result.partitions(self._config.chunk_rows)
            while True:
                with source.at_most(TIMEOUTS.silence):
                    rows = next(pages, None)
                if rows is None:
                    return
                yield Page(names, rows)

    def first_value(self, statement: sa.Select[Any]) -> Any:
        """The first column of the first row; None where there is none."""
        with self._opened() as source, source.at_most(TIMEOUTS.silence):
            return source.connection.execute(statement).scalar()

    def few_rows(self, statement: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with self._opened() as source, source.at_most(TIMEOUTS.silence):
            return source.connection.execute(statement).fetchall()

    def count_if_quick(self, statement: sa.Select[Any]) -> int | None:
        """None: the database does not say within a minute. It is for progress only, which no job fails for or waits long for."""
        counted = sa.select(sa.func.count()).select_from(statement.subquery())
        try:
            with self._opened() as source, source.at_most(_COUNT_LIMIT):
                rows: int | None = source.connection.execute(counted).scalar()
        except SourceError as problem:
            logger.info("The rows of %s are not counted: %s", self._config.object, problem)
            return None
        return rows

    @property
    def _schema_and_table(self) -> tuple[str | None, str]:
        schema, _, name = self._config.object.rpartition(".")
        return schema or None, name

    @property
    def display_name(self) -> str:
        return f"The table `{self._config.object}`"

    @contextmanager
    def _opened(self) -> Iterator[SourceConnection]:
        """Database errors in words that name the source, without its password."""
        try:
            with open_database(self._config.url, TIMEOUTS) as source:
                keep_times_beyond_python(source.connection)
                keep_bad_texts_as_bytes(source.connection)
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


def _checked_target(url: str) -> DatabaseUrl:
    """Raises SourceError for what is not opened, and for a database file that is not there."""
    try:
        target = read_url(url)
    except UnusableUrl as unusable:
        raise SourceError(f"The connection's URL is not opened: {unusable}") from None
    if target.driver.has_file and not target.file.is_file():
        raise SourceError(
            f"There is no SQLite database at {target.file}. Check the path; an absolute one has four slashes, sqlite:////path/file.db."
        )
    return target
