"""A server as it is asked by SQL, beside the reading of its binlog: whether it can be tapped, and how its tables are defined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from time import monotonic

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ingestion.capture.binlog.events import Row
from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.binlog_files import BinlogFiles, read_binlog_files, read_newest_gtid, read_start_before
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
LOOK_S = 30.0
"""After so long no other account is tried, where none was heard."""
_SILENT = (
    "Lakehub cannot connect to this server with the account of one connection. Its new datasets are not captured until it can; datasets that are already captured "
    "continue with the account of another connection. Check the connection and its account. {}"
)


class ServerUnreachable(RuntimeError):
    """It does not answer, or not as it should; without the password, whatever it says."""


@dataclass(frozen=True)
class ServerLook:
    """A server that can be tapped. `url`: that of an account which may. `charsets`: by the number of a collation. `silent`: by the URL of another account
    why nothing is asked by it."""

    url: str = field(repr=False)
    files: BinlogFiles
    charsets: Mapping[int, str]
    warnings: tuple[str, ...]
    silent: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class TableLook:
    """`problems`: why it cannot be captured, whatever its columns. `definition`: None: the account sees no such table. `generated`: by column that the server
    makes of others, of which."""

    problems: tuple[str, ...]
    definition: TableMap | None
    generated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def look_at_server(urls: Sequence[str]) -> ServerLook:
    """By the first account that may do all that it takes: what is wrong with another one is no reason for its datasets to wait. Raises Untappable,
    ServerUnreachable."""
    refusals, silent, look = list[str](), dict[str, str](), None
    until = monotonic() + LOOK_S
    for url in urls:
        if look is None and silent and monotonic() >= until:
            break
        try:
            if look is None:
                look = _look_by(url, refusals)
            else:
                _require_heard(url)
        except ServerUnreachable as problem:
            silent[url] = str(problem)
    if look is not None:
        return replace(look, silent={url: _SILENT.format(why) for url, why in silent.items()})
    if silent and not refusals:
        raise ServerUnreachable(next(iter(silent.values())))
    raise Untappable(refusals[0] if refusals else "Nothing is captured from the server any more.")


def is_heard(url: str) -> bool:
    """Does the account get through by now?"""
    try:
        _require_heard(url)
    except ServerUnreachable:
        return False
    return True


def _look_by(url: str, refusals: list[str]) -> ServerLook | None:
    """None: the account may not, which is told in `refusals`."""
    with _connected(url) as connection:
        problems = server_problems(read_server_facts(connection))
        if refusal := " ".join(problem.text for problem in problems if not problem.is_warning):
            refusals.append(refusal)
            return None
        warnings = tuple(problem.text for problem in problems)
        return ServerLook(url, read_binlog_files(connection), read_charsets(connection), warnings)


def _require_heard(url: str) -> None:
    """Raises ServerUnreachable."""
    with _connected(url):
        pass


def read_files(url: str) -> BinlogFiles:
    """Raises ServerUnreachable."""
    with _connected(url) as connection:
        return read_binlog_files(connection)


def newest_gtid(url: str) -> str:
    """Raises ServerUnreachable."""
    with _connected(url) as connection:
        return read_newest_gtid(connection)


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
        definition = None if problems else read_definition(connection, database, table)
        return TableLook(problems, definition, facts.generated)
    except NoSuchTable:  # it was dropped just now
        return TableLook((), None)


@contextmanager
def _connected(url: str) -> Iterator[sa.Connection]:
    try:
        with open_database(with_mariadb_driver(url), _TIMEOUTS) as source, source.at_most(_TIMEOUTS.silence):
            yield source.connection
    except (CannotOpen, SQLAlchemyError) as problem:
        raise ServerUnreachable(error_text(problem, url)) from problem
