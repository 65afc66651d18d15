"""How databases differ: their SQL, their types, and what keeps a reading connection within its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from lakehub.kernel.partitions import Grain, offset_changes
from lakehub.kernel.partitions.form import TIME_IN_UTC, PartitionForm
from lakehub.user_sql import BadQuery
from quality.engines.scans.column_types import ColumnType
from quality.engines.sql.measure_sql import SqlDialect
from quality.engines.sql.numeric_bins import bin_of
from quality.engines.sql.portable_patterns import JAVA, PCRE, POSTGRESQL, RE2, pattern_matches


@dataclass(frozen=True)
class DatabaseDialect:
    """`dialect` writes SQL for a database once its quotes are known; `session_limits` are the statements that begin a reading."""

    dialect: Callable[[Callable[[str], str]], SqlDialect]
    session_limits: Callable[[int], Sequence[str]] = lambda milliseconds: ()

    @staticmethod
    def for_connection(connection: sa.Connection) -> DatabaseDialect:
        """Of a database that is not named here it is asked what most of them understand."""
        name = connection.dialect.name
        if name == "mysql" and getattr(connection.dialect, "is_mariadb", False):
            name = "mariadb"
        return _DATABASES.get(name, DatabaseDialect(_standard))


def dialect_of(connection: sa.Connection) -> SqlDialect:
    return DatabaseDialect.for_connection(connection).dialect(lambda name: quote_name(connection, name))


def sqlglot_dialect(connection: sa.Connection) -> str:
    """What the parser of people's queries calls the SQL of this database."""
    return _SQLGLOT_DIALECTS.get(connection.dialect.name, connection.dialect.name)


_SQLGLOT_DIALECTS = {"postgresql": "postgres", "mariadb": "mysql", "mssql": "tsql"}


def quote_name(connection: sa.Connection, name: str) -> str:
    """As the dialect quotes."""
    preparer = connection.dialect.identifier_preparer
    inner = escape_colons(name.replace(preparer.escape_quote, preparer.escape_to_quote))
    return f"{preparer.initial_quote}{inner}{preparer.final_quote}"


def escape_colons(text: str) -> str:
    """As SQLAlchemy takes a colon that begins no parameter."""
    return text.replace(":", r"\:")


def escape_persons_sql(text: str) -> str:
    """SQL of a person's as SQLAlchemy takes it. Raises BadQuery.

    Where a driver numbers its parameters, SQLAlchemy replaces all from `%(` to the next `)s`, also in texts and names.
    """
    if "%(" in text:
        raise BadQuery("The query has `%(` in it, which the driver takes for a parameter: write '%' || '(' instead.")
    return escape_colons(text)


def _converts_zone(kind: ColumnType, form: PartitionForm) -> bool:
    """A time that has to be moved to the clock of the dataset's zone before it is cut."""
    return kind is ColumnType.INSTANT or (kind is ColumnType.LOCAL and form.text == TIME_IN_UTC)


def _cut_in_postgresql(column: str, kind: ColumnType, form: PartitionForm) -> str:
    instant = f"timezone('UTC', {column})" if kind is ColumnType.LOCAL else column
    converts = _converts_zone(kind, form)
    local = f"timezone('{form.zone.key}', {instant})" if converts else f"CAST({column} AS TIMESTAMP)"
    text = f"to_char(date_trunc('{form.grain}', {local}), 'YYYY-MM-DD HH24')"
    if converts and form.grain is Grain.HOUR:
        text += f" || '@' || CAST(EXTRACT(EPOCH FROM {local} - timezone('UTC', {instant})) AS BIGINT)"
    return f"COALESCE(NULLIF({text}, ''), CAST({column} AS VARCHAR))"


_CUTS_IN_MYSQL = {
    Grain.HOUR: "DATE_FORMAT({0}, '%Y-%m-%d %H')",
    Grain.DAY: "DATE_FORMAT({0}, '%Y-%m-%d 00')",
    Grain.WEEK: "DATE_FORMAT({0} - INTERVAL WEEKDAY({0}) DAY, '%Y-%m-%d 00')",
    Grain.MONTH: "DATE_FORMAT({0}, '%Y-%m-01 00')",
    Grain.QUARTER: "CONCAT(YEAR({0}), '-', LPAD(QUARTER({0}) * 3 - 2, 2, '0'), '-01 00')",
    Grain.YEAR: "DATE_FORMAT({0}, '%Y-01-01 00')",
}


def _offset_sql(instant: str, zone: ZoneInfo) -> str:
    """How many seconds the zone is ahead of UTC at an instant: databases need not know zones, and none do before 1970."""
    *changes, (_, first) = offset_changes(zone)
    if not changes:
        return str(first)
    whens = " ".join(f"WHEN {instant} >= '{at:%Y-%m-%d %H:%M:%S}' THEN {offset}" for at, offset in changes)
    return escape_colons(f"CASE {whens} ELSE {first} END")


def _cut_in_mysql(column: str, kind: ColumnType, form: PartitionForm) -> str:
    if not _converts_zone(kind, form):
        return _CUTS_IN_MYSQL[form.grain].format(column)
    offset = _offset_sql(column, form.zone)
    text = _CUTS_IN_MYSQL[form.grain].format(f"TIMESTAMPADD(SECOND, {offset}, {column})")
    return f"CONCAT({text}, '@', {offset})" if form.grain is Grain.HOUR else text


_CUTS_IN_SQLITE = {
    Grain.HOUR: "strftime('%Y-%m-%d %H', {0})",
    Grain.DAY: "strftime('%Y-%m-%d 00', {0})",
    Grain.WEEK: "date({0}, 'weekday 0', '-6 days') || ' 00'",
    Grain.MONTH: "strftime('%Y-%m-01 00', {0})",
    Grain.QUARTER: "strftime('%Y-', {0}) || substr('0' || ((strftime('%m', {0}) + 2) / 3 * 3 - 2), -2) || '-01 00'",
    Grain.YEAR: "strftime('%Y-01-01 00', {0})",
}


def _cut_in_sqlite(column: str, kind: ColumnType, form: PartitionForm) -> str:
    """Times are texts here: what is none keeps its text."""
    text = _CUTS_IN_SQLITE[form.grain].format(column)
    if _converts_zone(kind, form):
        offset = _offset_sql(f"datetime({column})", form.zone)
        text = _CUTS_IN_SQLITE[form.grain].format(f"datetime({column}, ({offset}) || ' seconds')")
        text += f" || '@' || ({offset})" if form.grain is Grain.HOUR else ""
    return f"COALESCE({text}, CAST({column} AS VARCHAR))"


def _standard(quote: Callable[[str], str]) -> SqlDialect:
    return SqlDialect(
        quote=quote,
        parameter=lambda name: f":{name}",
        key=lambda columns: f"({', '.join(columns)})",
        matches=lambda column, pattern: f"REGEXP_LIKE({column}, {pattern})",
        flavour=JAVA,
        is_nan=lambda column: f"{column} <> {column}",
    )


def _postgresql(quote: Callable[[str], str]) -> SqlDialect:
    return replace(
        _standard(quote),
        matches=lambda column, pattern: f"{column} ~ {pattern}",
        flavour=POSTGRESQL,
        double_type="DOUBLE PRECISION",
        cut_time=_cut_in_postgresql,
        column=lambda column, kind: f'{column} COLLATE "C"' if kind is ColumnType.TEXT else column,
        whole_keys=lambda columns, whole: f"COUNT(DISTINCT ({', '.join(columns)})) FILTER (WHERE {whole})",
        extreme=lambda column, kind: f"CAST({column} AS INTEGER)" if kind is ColumnType.BOOLEAN else column,
        is_nan=lambda column: f"{column} = CAST('NaN' AS DOUBLE PRECISION)",
    )


def _mysql(quote: Callable[[str], str]) -> SqlDialect:
    """Texts as bytes: else 'AA' is 'aa' and 'A' is 'A ', as the rules of a language say."""
    return replace(
        _standard(quote),
        key=lambda columns: ", ".join(f"{column} IS NULL, COALESCE({column}, '')" for column in columns),
        # It leaves out the rows in which one is null.
        whole_keys=lambda columns, whole: f"COUNT(DISTINCT {', '.join(columns)})",
        matches=lambda column, pattern: f"CONVERT({column} USING utf8mb4) COLLATE utf8mb4_bin REGEXP {pattern}",
        flavour=PCRE,
        column=lambda column, kind: (
            f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)" if kind is ColumnType.TEXT else column
        ),
        is_nan=lambda column: "FALSE",
        cut_time=_cut_in_mysql,
        joined=lambda columns: (
            "CONCAT(" + ", '/', ".join(f"CONVERT(CAST({column} AS CHAR) USING utf8mb4)" for column in columns) + ")"
        ),
    )


_EXACT_TYPES = (ColumnType.INTEGER, ColumnType.DECIMAL)


def _sqlite(quote: Callable[[str], str]) -> SqlDialect:
    return replace(
        _standard(quote),
        key=lambda columns: " || ',' || ".join(f"quote({column})" for column in columns),
        matches=lambda column, pattern: f"lakehub_matches({pattern}, {column})",
        flavour=RE2,
        column=lambda column, kind: f"{column} COLLATE BINARY" if kind is ColumnType.TEXT else column,
        sum_of=lambda column, kind: f"lakehub_sum({column})" if kind in _EXACT_TYPES else f"SUM({column})",
        is_nan=lambda column: "FALSE",
        bin_function=lambda column: f"lakehub_bin({column})",
        cut_time=_cut_in_sqlite,
        # Times are texts: a second as short as it can be is not greater than the same one with zeros behind.
        bound=lambda time: time.isoformat(" "),
    )


_DATABASES = {
    "postgresql": DatabaseDialect(
        _postgresql,
        lambda ms: ("SET TRANSACTION READ ONLY", f"SET LOCAL statement_timeout = {ms:d}", "SET LOCAL TIME ZONE 'UTC'"),
    ),
    "mysql": DatabaseDialect(
        _mysql,
        lambda ms: (
            f"SET SESSION max_execution_time = {ms:d}, time_zone = '+00:00'",
            "SET SESSION TRANSACTION READ ONLY",
        ),
    ),
    "mariadb": DatabaseDialect(
        _mysql,
        lambda ms: (
            f"SET SESSION max_statement_time = {ms / 1000:f}, time_zone = '+00:00'",
            "SET SESSION TRANSACTION READ ONLY",
        ),
    ),
    "sqlite": DatabaseDialect(_sqlite, lambda ms: ("PRAGMA query_only = ON",)),
}


class _ExactSum:
    """SQLite's own sum of integers fails where it does not fit 64 bits, and it adds up decimals as doubles."""

    def __init__(self) -> None:
        self._total: int | Decimal | None = None

    def step(self, value: float | None) -> None:
        if value is not None:
            exact = value if isinstance(value, int) else Decimal(repr(value))
            self._total = exact if self._total is None else self._total + exact

    def finalize(self) -> str | None:
        return None if self._total is None else str(self._total)


def register_sqlite_functions(raw: Any) -> None:
    """The functions that the other databases have of their own."""
    raw.create_function("lakehub_matches", 2, _matches_pattern, deterministic=True)
    raw.create_function(
        "lakehub_bin", 1, lambda value: None if value is None else bin_of(float(value)), deterministic=True
    )
    raw.create_aggregate("lakehub_sum", 1, _ExactSum)


def _matches_pattern(pattern: str, value: object) -> bool | None:
    return None if value is None else pattern_matches(pattern, str(value))


def column_type_of(column: sa.types.TypeEngine[Any]) -> ColumnType:
    if isinstance(column, mysql.TINYINT) and column.display_width == 1:
        return ColumnType.BOOLEAN
    if isinstance(column, sa.DateTime):
        return ColumnType.INSTANT if column.timezone or isinstance(column, mysql.TIMESTAMP) else ColumnType.LOCAL
    return next((kind for type_class, kind in _COLUMN_TYPES if isinstance(column, type_class)), ColumnType.OTHER)


_COLUMN_TYPES: tuple[tuple[type[sa.types.TypeEngine[Any]], ColumnType], ...] = (
    (sa.Boolean, ColumnType.BOOLEAN),
    (sa.Integer, ColumnType.INTEGER),
    (sa.Float, ColumnType.FLOAT),
    (sa.Numeric, ColumnType.DECIMAL),
    (sa.Date, ColumnType.DATE),
    (sa.Enum, ColumnType.OTHER),
    (sa.String, ColumnType.TEXT),
    (sa.LargeBinary, ColumnType.BINARY),
)


def bind_type(value: object) -> sa.types.TypeEngine[Any]:
    """The type that a value is bound as, so that each driver writes it as its columns have it."""
    if isinstance(value, datetime):
        return sa.DateTime(timezone=value.tzinfo is not None)
    if isinstance(value, date):
        return sa.Date()
    return sa.Numeric() if isinstance(value, Decimal) else sa.types.NULLTYPE
