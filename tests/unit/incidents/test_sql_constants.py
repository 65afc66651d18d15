"""Constants that a database reads otherwise than they look, or that a comparison changes: none narrows a range wrongly."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_reads import TableReads, parse_query, tables_read
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import partition_form

UTC_ZONE = ZoneInfo("UTC")
CLOCK = QueryClock(datetime(2026, 11, 17, 19, 32, tzinfo=UTC), UTC_ZONE)
FLIGHTS = TableShape("day", Grain.DAY, UTC_ZONE, "ts", frozenset({"day", "ts"}))
TRIPS = TableShape("", Grain.NONE, UTC_ZONE, "ts", frozenset({"ts"}))
HOURS = TableShape("hour", Grain.HOUR, UTC_ZONE, "", frozenset({"hour"}))
YEARS = TableShape("year", Grain.YEAR, UTC_ZONE, "", frozenset({"year"}))
FORM = partition_form("day", Grain.DAY, UTC_ZONE, "%Y%m%d")
BY_FORM = TableShape("day", Grain.DAY, UTC_ZONE, "", frozenset({"day"}), FORM)


def read(where: str, dialect: str, shape: TableShape = FLIGHTS) -> TableReads:
    (table,) = tables_read(parse_query(f"SELECT * FROM t WHERE {where}", dialect), {"t": shape}, CLOCK)
    return table


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, tzinfo=UTC)


DATES_OF_DATES = {
    "a cast of a date": ("duckdb", "CAST(DATE '2026-11-18' AS DATE)"),
    "a cast of a cast of a date": ("postgres", "CAST(CAST(DATE '2026-11-18' AS DATE) AS DATE)"),
    "a text that is cast twice": ("postgres", "'2026-11-18'::date::date"),
    "DATE of DATE": ("duckdb", "DATE(DATE('2026-11-18'))"),
    "DATE of DATE in SQLite": ("sqlite", "date(date('2026-11-18'))"),
    "DATE of a cast": ("mysql", "DATE(CAST('2026-11-18' AS DATE))"),
    "a cast in Spark": ("spark", "CAST(DATE '2026-11-18' AS DATE)"),
}


@pytest.mark.parametrize("form", DATES_OF_DATES)
def test_a_date_that_is_cast_to_a_date_is_that_date(form: str) -> None:
    dialect, constant = DATES_OF_DATES[form]
    (below,) = read(f"day < {constant}", dialect).ranges
    assert below.end == at(18)
    (from_it,) = read(f"day >= {constant}", dialect).ranges
    assert from_it.start == at(18)


def test_a_name_ends_a_range_though_its_column_is_cast() -> None:
    """`05` may be cut off, so that the constant means the whole day: rows of the 16th are read."""
    (span,) = read("CAST(hour AS TIMESTAMP) < '2026-11-16T05'", "duckdb", HOURS).ranges
    assert span.end >= at(16, 5)


@pytest.mark.parametrize("comparison", ["<=", "="])
def test_an_hour_may_be_cut_off_to_be_compared_with_a_date(comparison: str) -> None:
    (span,) = read(f"hour {comparison} DATE '2026-11-16'", "mysql", HOURS).ranges
    assert span.end >= at(17)


UNSURE = {
    "digits of another script": ("mysql", "ts < CURRENT_TIMESTAMP - INTERVAL '٩' DAY"),
    "digits of another script, of a name": ("mysql", "day < DATE '2026-11-19' - INTERVAL '３' DAY"),
    "digits of another script in another dialect": ("postgres", "ts < now() - INTERVAL '٩' DAY"),
    "an offset without a colon": ("mysql", "ts >= '2026-11-20 00:00+0530'"),
    "an offset without a colon behind seconds": ("mysql", "ts >= '2026-11-20 00:00:00+0530'"),
    "an offset without a colon elsewhere": ("postgres", "ts >= '2026-11-20 00:00:00+0530'"),
    "an offset of hours behind minutes": ("mysql", "ts < '2026-11-20 00:00+05'"),
    "an offset of hours behind seconds": ("mysql", "ts < '2026-11-20 00:00:00+05'"),
    "an offset behind minutes": ("mysql", "ts < '2026-11-20 00:00+05:00'"),
    "a Z": ("mysql", "ts < '2026-11-20T00:00:00Z'"),
    "a DATE of such an offset": ("mysql", "ts >= DATE('2026-11-16 23:00+0530')"),
    "BETWEEN a text and a number": ("mysql", "day BETWEEN '2026-11-20' AND 20261121"),
    "BETWEEN a number and a text": ("mysql", "day BETWEEN 20261120 AND '2026-11-21'"),
    "BETWEEN a text and a date": ("mysql", "day BETWEEN '2026-11-20' AND DATE '2026-11-21'"),
    "BETWEEN with an end that is not understood": ("mysql", "day BETWEEN '2026-11-20' AND CAST('2026-11-21' AS TIME)"),
    "BETWEEN with an end that is no time": ("duckdb", "ts BETWEEN '2026-11-20' AND '20261121'"),
    "IN of a text and a date": ("duckdb", "ts IN ('2026-11-16 05:00', DATE '2026-11-17')"),
    "a unary plus": ("sqlite", "+day <= '2026-11-05'"),
    "a unary plus in parentheses": ("sqlite", "(+ day) <= '2026-11-05'"),
    "a unary plus on the other side": ("sqlite", "'2026-11-05' >= +day"),
    "a unary plus twice": ("sqlite", "1 + +1 = 2 AND day <= '2026-11-05'"),
}  # fmt: skip


@pytest.mark.parametrize("form", UNSURE)
def test_what_a_database_reads_otherwise_bounds_nothing(form: str) -> None:
    dialect, where = UNSURE[form]
    assert not read(where, dialect).bounded


@pytest.mark.parametrize(
    ("has_numbers", "where", "is_bounded"),
    [
        (None, "day >= 20261120", False),
        (None, "day >= '20261120'", False),
        (None, "day = 20261120", False),
        (True, "day >= 20261120", True),
        (True, "day >= '20261120'", False),
        (False, "day >= '20261120'", True),
        (False, "day >= 20261120", False),
        (True, "+day >= 20261120", False),
    ],
)
def test_a_column_of_sqlite_is_compared_by_its_declared_type(
    has_numbers: bool | None, where: str, is_bounded: bool
) -> None:
    assert read(where, "sqlite", replace(BY_FORM, has_numbers=has_numbers)).bounded is is_bounded


@pytest.mark.parametrize("where", ["day BETWEEN '20261116' AND 20261118", "day IN ('20261116', 20261118)"])
def test_constants_of_two_kinds_bound_no_form(where: str) -> None:
    assert not read(where, "mysql", BY_FORM).bounded


def test_digits_of_another_script_are_no_partition() -> None:
    assert not read("day < '٢٠٢٦١١١٦'", "duckdb", BY_FORM).bounded


@pytest.mark.parametrize(
    ("dialect", "where"),
    [
        ("sqlite", "date(year) < '2026-01-01'"),  # a number is a day of the Julian calendar
        ("sqlite", "year < '2026'"),  # where numbers are stored they stand before all texts
        ("mysql", "year < DATE '2026-01-01'"),
        ("duckdb", "CAST(year AS DATE) < DATE '2026-01-01'"),
    ],
)
def test_a_year_is_no_date(dialect: str, where: str) -> None:
    assert not read(where, dialect, YEARS).bounded


def test_a_year_that_is_a_text_is_compared_as_one() -> None:
    assert read("year < '2026'", "sqlite", replace(YEARS, has_numbers=False)).bounded


@pytest.mark.parametrize(
    ("dialect", "where"),
    [
        ("mysql", "ts = CAST('2026-11-16 05:00:00.999999' AS DATETIME)"),  # MariaDB cuts, MySQL rounds
        ("mysql", "ts >= CAST('2026-11-16 05:00:00.9' AS DATETIME)"),
        ("tsql", "ts >= '2026-11-16 05:00:29'"),  # SMALLDATETIME: 05:00
        ("tsql", "ts >= CAST('2026-11-16 05:00:00.001' AS DATETIME)"),
        ("duckdb", "ts >= '2026-11-16 05:00:00.5'"),  # TIMESTAMP_S
    ],
)
def test_a_constant_may_be_rounded_down(dialect: str, where: str) -> None:
    (span,) = read(where, dialect, TRIPS).ranges
    assert span.start <= at(16, 5)


@pytest.mark.parametrize("dialect", ["mysql", "tsql", "trino"])
def test_a_column_that_is_cast_may_lose_its_fractions(dialect: str) -> None:
    """05:00:00.7 is 05:00:00 then, and is read."""
    kind = "TIMESTAMP" if dialect == "trino" else "DATETIME"
    (span,) = read(f"CAST(ts AS {kind}) <= CAST('2026-11-16 05:00:00' AS {kind})", dialect, TRIPS).ranges
    assert span.end > at(16, 5, 0, 0).replace(microsecond=700_000)


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "spark"])
def test_a_text_is_cut_off_to_a_date_where_the_column_is_one(dialect: str) -> None:
    (span,) = read("ts >= '2026-11-16 05:00'", dialect, replace(TRIPS, may_be_date=True)).ranges
    assert span.start <= at(16)


@pytest.mark.parametrize(
    ("dialect", "where"),
    [
        ("mysql", "day >= '2026-11-16' AND day < '2026-11-18'"),
        ("mysql", "day BETWEEN '2026-11-16' AND '2026-11-17'"),
        ("mysql", "day BETWEEN DATE '2026-11-16' AND DATE '2026-11-17'"),
        ("mysql", "day IN ('2026-11-16', '2026-11-17')"),
        ("mysql", "ts >= '2026-11-16 00:00:00+00:00' AND ts < '2026-11-18 00:00:00+00:00'"),
        ("sqlite", "day >= '2026-11-16' AND day < '2026-11-18'"),
        ("postgres", "ts >= '2026-11-16 00:00+00' AND ts < DATE '2026-11-17' + INTERVAL '0 days' AND day <= '2026-11-17'"),
        ("duckdb", "ts >= TIMESTAMP '2026-11-16 00:00:00' AND ts < TIMESTAMP '2026-11-18' AND 1 + 1 = 2"),
    ],
)  # fmt: skip
def test_usual_constants_bound_exactly(dialect: str, where: str) -> None:
    (span,) = read(where, dialect).ranges
    assert (span.start, span.end) == (at(16), at(18))
