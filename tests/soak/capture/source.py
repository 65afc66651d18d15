"""The MariaDB whose tables are captured, and four writers, each with a session of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from threading import Event, Thread
from typing import Any

import pymysql

from tests.polling import scaled
from tests.soak.capture.tables import TABLE_OF_LARGE, TABLES, Table, comparable

DATABASE, WRITERS = "shop", 4
LARGE = 40_000
"""Rows of one transaction, which the tap takes in parts of 10,000 changes."""
FIRST_LARGE = 12_000
"""So many of them are there before anything is captured."""
_HARMLESS = (1205, 1213, 1062, 1054, 1412, 1146)
"""Waited too long for a lock, was the victim of a deadlock, a key that is there; a column that is gone meanwhile, a table that is another one since, or gone."""


class CapturedSource:
    def __init__(self, port: int, random: Random, database: str = DATABASE) -> None:
        self._port, self._random, self._database = port, random, database
        self.transactions = 0
        self._is_paused, self._is_over = Event(), Event()
        self._idle = [Event() for _ in range(WRITERS)]
        self._is_paused.set()
        self.guests: list[Callable[[Random], Iterator[str]]] = []
        """They say the statements of a transaction that changes another table."""
        self.extra: dict[str, dict[str, str]] = {table.name: {} for table in TABLES}
        """By table, the types of columns that it did not have at first: those may be renamed and dropped at any time."""

    @property
    def url(self) -> str:
        return f"mysql://lakehub:lakehub@127.0.0.1:{self._port}/{self._database}"

    def create_database(self) -> None:
        with self.session(anywhere=True) as cursor:
            cursor.execute(f"CREATE DATABASE {self._database} CHARACTER SET utf8mb4")

    def create_tables(self) -> None:
        for table in TABLES:
            rows = ", ".join(f"({table.row(number, self._random)})" for number in range(0, table.numbers, 2))
            self.execute(f"CREATE TABLE {table.name} ({table.create})", f"INSERT INTO {table.name} VALUES {rows}")
        self.change_many_rows(FIRST_LARGE)

    def execute(self, *statements: str) -> None:
        with self.session() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def change_many_rows(self, rows: int = LARGE) -> None:
        """In one transaction; their number stays the same from the second time on."""
        self.execute(
            f"INSERT INTO {TABLE_OF_LARGE.name} (token, score) SELECT concat('large ', seq), rand() FROM seq_1_to_{rows} "
            "ON DUPLICATE KEY UPDATE score = VALUES(score)"
        )

    @contextmanager
    def writers(self) -> Iterator[None]:
        threads = [
            Thread(target=self._write, args=(n, Random(self._random.random())), daemon=True) for n in range(WRITERS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()

    def resume(self) -> None:
        for each in self._idle:
            each.clear()
        self._is_paused.clear()

    def pause(self) -> None:
        """Nothing is written when it returns."""
        self._is_paused.set()
        for each in self._idle:
            assert each.wait(scaled(60)), "a writer goes on"

    def newest(self) -> str:
        with self.session() as cursor:
            cursor.execute("SELECT @@gtid_binlog_pos")
            return str(cursor.fetchall()[0][0])

    def rows_read(self) -> int:
        """Of all tables, since the server began."""
        with self.session() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Rows_read'")
            return int(cursor.fetchone()[1])

    def rows(self, table: Table) -> dict[tuple[Any, ...], dict[str, Any]]:
        """By key, as they must be in the lake."""
        with self.session(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SHOW COLUMNS FROM {table.name}")
            selected = [_expression(row["Field"], row["Type"]) for row in cursor.fetchall()]
            cursor.execute(f"SELECT {', '.join(selected)} FROM {table.name}")
            rows = [{name: comparable(value) for name, value in row.items()} for row in cursor.fetchall()]
        return {tuple(row[name] for name in table.key): row for row in rows}

    def _write(self, number: int, random: Random) -> None:
        while not self._is_over.is_set():
            if self._is_paused.is_set():
                self._idle[number].set()
                time.sleep(0.05)
                continue
            # The server may be gone: another session goes on when it is back.
            with suppress(pymysql.OperationalError, pymysql.InterfaceError), self.session(autocommit=False) as cursor:
                cursor.execute("SET SESSION sql_mode = ''")
                while not (self._is_paused.is_set() or self._is_over.is_set()):
                    self._transaction(cursor, random)
            time.sleep(0.1)

    def _transaction(self, cursor: Any, random: Random) -> None:
        connection = cursor.connection
        try:
            statements = self._statements(random)
            for place, statement in enumerate(statements):
                if place == 1:
                    cursor.execute("SAVEPOINT here")
                cursor.execute(statement)
            if len(statements) > 1 and random.random() < 0.2:
                cursor.execute("ROLLBACK TO here")
            if random.random() < 0.1:
                connection.rollback()
            else:
                connection.commit()
        except pymysql.MySQLError as problem:
            if problem.args[0] not in _HARMLESS:
                raise
            connection.rollback()
        self.transactions += 1
        time.sleep(random.random() * 0.05)

    def _statements(self, random: Random) -> list[str]:
        """Of one transaction, of a table or of a guest."""
        changes: list[Callable[[Random], Iterator[str]]] = [
            *(partial(self._of_table, table) for table in TABLES),
            *self.guests,
        ]
        return [*random.choice(changes)(random)]

    def _of_table(self, table: Table, random: Random) -> Iterator[str]:
        return table.random_statements(random, [*self.extra[table.name]])

    @contextmanager
    def session(
        self, cursor: Any = pymysql.cursors.Cursor, *, autocommit: bool = True, anywhere: bool = False
    ) -> Iterator[Any]:
        """`anywhere`: in no database."""
        connection = pymysql.connect(
            host="127.0.0.1", port=self._port, user="lakehub", password="lakehub", database=None if anywhere else self._database,
            autocommit=autocommit, cursorclass=cursor, charset="utf8mb4", connect_timeout=10, read_timeout=30,
        )  # fmt: skip
        with connection, connection.cursor() as opened:
            yield opened


def _expression(name: str, type_: str) -> str:
    """BIT comes as bytes, and TIME as a length of time."""
    if type_.startswith("bit"):
        return f"{name} + 0 AS {name}"
    return f"CAST({name} AS CHAR) AS {name}" if type_.startswith("time(") else name
