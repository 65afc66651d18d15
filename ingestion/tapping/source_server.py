"""A server as it is asked by SQL, beside the reading of its binlog: whether it can be tapped, and how its tables are defined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ingestion.capture.binlog.events import Row
from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.binlog_files import BinlogFiles, read_binlog_files, read_start_before
from ingestion.capture.server_checks import read_server_facts, server_problems
from ingestion.capture.snapshot.cell_chunks import CellReader
from ingestion.capture.snapshot.definitions import NoSuchTable, read_charsets, read_definition
from ingestion.capture.table_checks import table_problems
from ingestion.capture.table_facts import read_table_facts
from ingestion.capture.tap.captured_cells import CapturedCells
from ingestion.tapping.beginning import Untappable
from lakehub.source_databases.engine import CannotOpen, error_text, open_database
from lakehub.source_databases.timeouts import Timeouts
from lakehub.source_databases.urls import with_mariadb_driver

_TIMEOUTS = Timeouts(silence=timedelta(seconds=60))


class ServerUnreachable(RuntimeError):
    """It does not answer, or not as it should; without the password, whatever it says."""


@dataclass(frozen=True)
class ServerLook:
    """A server that can be tapped. `url`: that of an account which may. `charsets`: by the number of a collation."""

    url: str = field(repr=False)
    files: BinlogFiles
    charsets: Mapping[int, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class TableLook:
    """`problems`: why it cannot be captured, whatever its columns. `definition`: None: the account sees no such table."""

    problems: tuple[str, ...]
    definition: TableMap | None


def look_at_server(urls: Sequence[str]) -> ServerLook:
    """By the first account that may do all that it takes. Raises Untappable, ServerUnreachable."""
    refusals = []
    for url in urls:
        with _connected(url) as connection:
            problems = server_problems(read_server_facts(connection))
            refusals.append(" ".join(problem.text for problem in problems if not problem.is_warning))
            if not refusals[-1]:
                charsets = read_charsets(connection)
                warnings = tuple(problem.text for problem in problems)
                return ServerLook(url, read_binlog_files(connection), charsets, warnings)
    raise Untappable(refusals[0] if refusals else "Nothing is captured from the server any more.")


def read_files(url: str) -> BinlogFiles:
    """Raises ServerUnreachable."""
    with _connected(url) as connection:
        return read_binlog_files(connection)


def start_before(url: str, gtid: str) -> str:
    """See `read_start_before`. Raises ServerUnreachable."""
    with _connected(url) as connection:
        return read_start_before(connection, gtid)


def look_at_tables(url: str, tables: Sequence[tuple[str, str]]) -> dict[tuple[str, str], TableLook]:
    """By database and table. Raises ServerUnreachable."""
    with _connected(url) as connection:
        return {name: _look_at_table(connection, *name) for name in tables}


def sample_cells(url: str, table: CapturedCells) -> list[Row]:
    """Some of the cells that are there: what their bodies have is in the first version of the schema. Raises ServerUnreachable."""
    with _connected(url) as connection:
        return CellReader(connection, table.definition, table.columns).sample()


def _look_at_table(connection: sa.Connection, database: str, table: str) -> TableLook:
    facts = read_table_facts(connection, database, table)
    if facts is None:
        return TableLook((), None)
    problems = tuple(table_problems(facts, database, table))
    try:
        return TableLook(problems, None if problems else read_definition(connection, database, table))
    except NoSuchTable:  # it was dropped just now
        return TableLook((), None)


@contextmanager
def _connected(url: str) -> Iterator[sa.Connection]:
    try:
        with open_database(with_mariadb_driver(url), _TIMEOUTS) as source, source.at_most(_TIMEOUTS.silence):
            yield source.connection
    except (CannotOpen, SQLAlchemyError) as problem:
        raise ServerUnreachable(error_text(problem, url)) from problem
