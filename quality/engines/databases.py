"""How databases differ: their SQL, their types, and what keeps a reading connection within its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from quality.engines.bins import bin_of
from quality.engines.kinds import Kind
from quality.engines.patterns import JAVA, PCRE, POSTGRESQL, RE2, matches
from quality.engines.select import Dialect


@dataclass(frozen=True)
class Database:
    """`dialect` writes SQL for a database once its quotes are known; `bounds` are the statements that begin a reading."""

    dialect: Callable[[Callable[[str], str]], Dialect]
    bounds: Callable[[int], Sequence[str]] = lambda milliseconds: ()

    @staticmethod
    def of(connection: sa.Connection) -> Database:
        """Of a database that is not named here it is asked what most of them understand."""
        name = connection.dialect.name
        if name == "mysql" and getattr(connection.dialect, "is_mariadb", False):
            name = "mariadb"
        return _DATABASES.get(name, Database(_standard))


def dialect_of(connection: sa.Connection) -> Dialect:
    return Database.of(connection).dialect(lambda name: quoted(connection, name))


def written_in(connection: sa.Connection) -> str:
    """What the parser of people's queries calls the SQL of this database."""
    return _PARSED_AS.get(connection.dialect.name, connection.dialect.name)


_PARSED_AS = {"postgresql": "postgres", "mariadb": "mysql", "mssql": "tsql"}


def quoted(connection: sa.Connection, name: str) -> str:
    """As the dialect quotes."""
    preparer = connection.dialect.identifier_preparer
    inner = escaped(name.replace(preparer.escape_quote, preparer.escape_to_quote))
    return f"{preparer.initial_quote}{inner}{preparer.final_quote}"


def escaped(text: str) -> str:
    """As SQLAlchemy takes a colon that begins no parameter."""
    return text.replace(":", r"\:")


def _standard(quote: Callable[[str], str]) -> Dialect:
    return Dialect(
        quote=quote,
        parameter=lambda name: f":{name}",
        key=lambda columns: f"({', '.join(columns)})",
        matches=lambda column, pattern: f"REGEXP_LIKE({column}, {pattern})",
        flavour=JAVA,
        is_nan=lambda column: f"{column} <> {column}",
    )


def _postgresql(quote: Callable[[str], str]) -> Dialect:
    return replace(
        _standard(quote),
        matches=lambda column, pattern: f"{column} ~ {pattern}",
        flavour=POSTGRESQL,
        double="DOUBLE PRECISION",
        column=lambda column, kind: f'{column} COLLATE "C"' if kind is Kind.TEXT else column,
        extreme=lambda column, kind: f"CAST({column} AS INTEGER)" if kind is Kind.BOOLEAN else column,
        is_nan=lambda column: f"{column} = CAST('NaN' AS DOUBLE PRECISION)",
    )


def _mysql(quote: Callable[[str], str]) -> Dialect:
    """Texts as bytes: else 'AA' is 'aa' and 'A' is 'A ', as the rules of a language say."""
    return replace(
        _standard(quote),
        key=lambda columns: ", ".join(f"{column} IS NULL, COALESCE({column}, '')" for column in columns),
        matches=lambda column, pattern: f"CONVERT({column} USING utf8mb4) COLLATE utf8mb4_bin REGEXP {pattern}",
        flavour=PCRE,
        column=lambda column, kind: f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)" if kind is Kind.TEXT else column,
        is_nan=lambda column: "FALSE",
    )


_EXACT = (Kind.INTEGER, Kind.DECIMAL)


def _sqlite(quote: Callable[[str], str]) -> Dialect:
    return replace(
        _standard(quote),
        key=lambda columns: " || ',' || ".join(f"quote({column})" for column in columns),
        matches=lambda column, pattern: f"lakehub_matches({pattern}, {column})",
        flavour=RE2,
        column=lambda column, kind: f"{column} COLLATE BINARY" if kind is Kind.TEXT else column,
        total=lambda column, kind: f"lakehub_sum({column})" if kind in _EXACT else f"SUM({column})",
        is_nan=lambda column: "FALSE",
        bins=lambda column: f"lakehub_bin({column})",
    )


_DATABASES = {
    "postgresql": Database(
        _postgresql,
        lambda ms: ("SET TRANSACTION READ ONLY", f"SET LOCAL statement_timeout = {ms:d}", "SET LOCAL TIME ZONE 'UTC'"),
    ),
    "mysql": Database(
        _mysql,
        lambda ms: (
            f"SET SESSION max_execution_time = {ms:d}, time_zone = '+00:00'",
            "SET SESSION TRANSACTION READ ONLY",
        ),
    ),
    "mariadb": Database(
        _mysql,
        lambda ms: (
            f"SET SESSION max_statement_time = {ms / 1000:f}, time_zone = '+00:00'",
            "SET SESSION TRANSACTION READ ONLY",
        ),
    ),
    "sqlite": Database(_sqlite, lambda ms: ("PRAGMA query_only = ON",)),
}


class _Sum:
    """SQLite's own sum of integers fails where it does not fit 64 bits, and it adds up decimals as doubles."""

    def __init__(self) -> None:
        self._total: int | Decimal | None = None

    def step(self, value: float | None) -> None:
        if value is not None:
            exact = value if isinstance(value, int) else Decimal(repr(value))
            self._total = exact if self._total is None else self._total + exact

    def finalize(self) -> str | None:
        return None if self._total is None else str(self._total)


def teach_sqlite(raw: Any) -> None:
    """The functions that the other databases have of their own."""
    raw.create_function("lakehub_matches", 2, _matches, deterministic=True)
    raw.create_function(
        "lakehub_bin", 1, lambda value: None if value is None else bin_of(float(value)), deterministic=True
    )
    raw.create_aggregate("lakehub_sum", 1, _Sum)


def _matches(pattern: str, value: object) -> bool | None:
    return None if value is None else matches(pattern, str(value))


def kind_of(column: sa.types.TypeEngine[Any]) -> Kind:
    if isinstance(column, mysql.TINYINT) and column.display_width == 1:
        return Kind.BOOLEAN
    if isinstance(column, sa.DateTime):
        return Kind.INSTANT if column.timezone or isinstance(column, mysql.TIMESTAMP) else Kind.LOCAL
    return next((kind for theirs, kind in _KINDS if isinstance(column, theirs)), Kind.OTHER)


_KINDS: tuple[tuple[type[sa.types.TypeEngine[Any]], Kind], ...] = (
    (sa.Boolean, Kind.BOOLEAN),
    (sa.Integer, Kind.INTEGER),
    (sa.Float, Kind.FLOAT),
    (sa.Numeric, Kind.DECIMAL),
    (sa.Date, Kind.DATE),
    (sa.Enum, Kind.OTHER),
    (sa.String, Kind.TEXT),
    (sa.LargeBinary, Kind.BINARY),
)


def bindable(value: object) -> sa.types.TypeEngine[Any]:
    """The type that a value is bound as, so that each driver writes it as its columns have it."""
    if isinstance(value, datetime):
        return sa.DateTime(timezone=value.tzinfo is not None)
    if isinstance(value, date):
        return sa.Date()
    return sa.Numeric() if isinstance(value, Decimal) else sa.types.NULLTYPE
