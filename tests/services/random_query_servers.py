"""PostgreSQL and MariaDB with the tables of random queries: each in two databases of its own, which are gone afterwards."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import uuid4

import psycopg
import pymysql
import sqlalchemy as sa
from pymysql.constants import CR

from tests.contracts.random_queries.dialects import MARIADB, POSTGRES
from tests.contracts.random_queries.engines import BadValue, DoesNotRun, Engine
from tests.polling import scaled
from tests.services.own_mariadb import OwnMariaDB

_SILENCE_S = 20.0
"""Well above `max_statement_time`."""


class Server(Engine):
    url: ClassVar[str]

    def _databases(self) -> tuple[Any, Any]:
        names = [f"random_queries_{uuid4().hex}" for _ in range(2)]
        with self._connection("") as every:
            for name in names:
                self._run(every, f"CREATE DATABASE {name}")
        self._names = names
        return self._connection(names[0]), self._connection(names[1])

    def close(self) -> None:
        super().close()
        with self._connection("") as every:
            for name in self._names:
                self._run(every, f"DROP DATABASE {name}")

    def _connection(self, database: str) -> Any:
        raise NotImplementedError

    def _run(self, database: Any, sql: str) -> None:
        database.cursor().execute(sql)


class PostgreSql(Server):
    dialect = POSTGRES
    types: ClassVar = {
        "day": "text",
        "time": "timestamp(3)",
        "text": "text",
        "int": "integer",
        "digits": "text",
        "number": "integer",
    }

    def _connection(self, database: str) -> Any:
        url = sa.make_url(self.url)
        url = url.set(database=database) if database else url
        options = "-c TimeZone=UTC -c statement_timeout=5000 -c max_parallel_workers_per_gather=0"
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True, options=options)

    def _rows_of(self, database: Any, sql: str) -> list[Any]:
        try:
            rows: list[Any] = database.execute(sql).fetchall()
        except psycopg.DataError as problem:
            raise BadValue(str(problem)) from None
        except psycopg.Error as problem:
            raise DoesNotRun(str(problem)) from None
        return rows


class MariaDb(Server):
    """A server of the test's own: some queries end MariaDB itself (10.11: a recursion that another one reads)."""

    dialect = MARIADB
    server: ClassVar[OwnMariaDB]
    types: ClassVar = {
        "day": "VARCHAR(20)",
        "time": "DATETIME(3)",
        "text": "VARCHAR(20)",
        "int": "INTEGER",
        "digits": "VARCHAR(20)",
        "number": "INTEGER",
    }

    def _connection(self, database: str) -> Any:
        url = sa.make_url(self.url)
        return pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            password=url.password or "",
            database=database or None,
            autocommit=True,
            read_timeout=scaled(_SILENCE_S),
            init_command="SET time_zone = '+00:00', max_statement_time = 5, sql_mode = 'STRICT_TRANS_TABLES'",
        )

    def _remove(self, database: Any, table: str) -> None:
        """A table that is dropped cannot be rolled back."""
        self._run(database, f"DELETE FROM {table}")

    def _rows_of(self, database: Any, sql: str) -> list[Any]:
        with database.cursor() as cursor:
            try:
                cursor.execute(sql)
                rows: list[Any] = list(cursor.fetchall())
            except pymysql.err.DataError as problem:
                raise BadValue(str(problem)) from None
            except pymysql.err.MySQLError as problem:
                if problem.args[0] in (CR.CR_SERVER_LOST, CR.CR_SERVER_GONE_ERROR):
                    self._connect_anew(database)
                raise DoesNotRun(str(problem)) from None
        return rows

    def _connect_anew(self, database: Any) -> None:
        """After a statement that ended the server, or that the server itself does not end, as it never ends planning it."""
        if self.server.has_ended():
            self.server.start()
            self._same.connect()
            self._changed.connect()
            return
        with self._connection("") as other:
            self._run(other, f"KILL {database.thread_id()}")
        database.connect()
