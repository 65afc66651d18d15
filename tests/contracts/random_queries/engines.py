"""Databases with the tables of random queries, twice: as they are, and changed outside of what a query is said to read."""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import duckdb

from tests.contracts.random_queries.dialects import DUCKDB, SQLITE, Dialect
from tests.contracts.random_queries.tables import COLUMNS, Row


class DoesNotRun(Exception):
    """The database refuses the query."""


class BadValue(DoesNotRun):
    """A row has a value that the query cannot compute with. Which rows it looks at first is the database's to choose."""


class Engine(ABC):
    """`types` by the kinds of columns."""

    dialect: ClassVar[Dialect]
    types: ClassVar[Mapping[str, str]]

    def __init__(self, rows: Mapping[str, list[Row]]) -> None:
        self.rows = rows
        self._same, self._changed = self._databases()
        for database in (self._same, self._changed):
            for table, columns in COLUMNS.items():
                listed = ", ".join(f"{name} {self.types[kind]}" for name, kind in columns.items())
                self._run(database, f"CREATE TABLE {table} ({listed})")
                self._insert(database, table, rows[table])

    @abstractmethod
    def _databases(self) -> tuple[Any, Any]: ...

    @abstractmethod
    def _rows_of(self, database: Any, sql: str) -> list[Any]:
        """Raises DoesNotRun."""

    def _run(self, database: Any, sql: str) -> None:
        database.execute(sql)

    def _insert(self, database: Any, table: str, rows: Collection[Row]) -> None:
        if rows:
            values = ", ".join(f"({', '.join(_literal(value) for value in row.values)})" for row in rows)
            self._run(database, f"INSERT INTO {table} VALUES {values}")

    def _remove(self, database: Any, table: str) -> None:
        self._run(database, f"DROP TABLE {table}")

    def close(self) -> None:
        for database in (self._same, self._changed):
            database.close()

    def answer(self, sql: str) -> list[str]:
        return sorted(map(repr, self._rows_of(self._same, sql)))

    def answer_after(self, sql: str, changes: Mapping[str, list[Row] | None]) -> list[str]:
        """Of the tables with these rows instead; None: the table is not there. It is as before afterwards."""
        self._run(self._changed, "BEGIN")
        try:
            for table, rows in changes.items():
                if rows is None:
                    self._remove(self._changed, table)
                else:
                    self._run(self._changed, f"DELETE FROM {table}")
                    self._insert(self._changed, table, rows)
            return sorted(map(repr, self._rows_of(self._changed, sql)))
        finally:
            self._run(self._changed, "ROLLBACK")


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


_DUCKDB_S = 10.0
"""After which a query is given up: some recursions over joins take hours."""


class DuckDb(Engine):
    dialect = DUCKDB
    types: ClassVar = {
        "day": "VARCHAR",
        "time": "TIMESTAMP",
        "text": "VARCHAR",
        "int": "INTEGER",
        "digits": "VARCHAR",
        "number": "INTEGER",
    }

    def _databases(self) -> tuple[Any, Any]:
        both = duckdb.connect(":memory:"), duckdb.connect(":memory:")
        for database in both:
            database.execute("SET threads = 1; SET TimeZone = 'UTC'; SET memory_limit = '500MB'")
        return both

    def _rows_of(self, database: Any, sql: str) -> list[Any]:
        alarm = threading.Timer(_DUCKDB_S, database.interrupt)
        alarm.start()
        try:
            rows: list[Any] = database.execute(sql).fetchall()
        except _BAD_VALUES as problem:
            raise BadValue(str(problem)) from None
        except duckdb.Error as problem:
            raise DoesNotRun(str(problem)) from None
        finally:
            alarm.cancel()
            alarm.join()
        return rows


_BAD_VALUES = (
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.OutOfRangeException,
    duckdb.InterruptException,
)


_SQLITE_STEPS = 500
"""Each of 10,000 instructions, by which a query is given up: some joins of joins take minutes."""


class Sqlite(Engine):
    dialect = SQLITE
    types: ClassVar = {
        "day": "TEXT",
        "time": "TIMESTAMP_TEXT",
        "text": "TEXT",
        "int": "INTEGER",
        "digits": "",
        "number": "INTEGER",
    }

    def _databases(self) -> tuple[Any, Any]:
        return tuple(sqlite3.connect(":memory:", isolation_level=None) for _ in range(2))  # type: ignore[return-value]

    def _rows_of(self, database: Any, sql: str) -> list[Any]:
        steps = iter(range(_SQLITE_STEPS))
        database.set_progress_handler(lambda: next(steps, None) is None, 10_000)
        try:
            rows: list[Any] = database.execute(sql).fetchall()
        except sqlite3.Error as problem:
            raise (BadValue if "interrupted" in str(problem) else DoesNotRun)(str(problem)) from None
        finally:
            database.set_progress_handler(None, 0)
        return rows


EMBEDDED: tuple[type[Engine], ...] = (DuckDb, Sqlite)
