"""What a query reads: which ranges are found, and what is asked for as a whole. `tests/contracts` runs queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_names import UnsupportedSql
from incidents.domain.gate.sql_reads import MAX_SQL_LENGTH, TableReads, parse_query, tables_read
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, parse_partition_name

UTC_ZONE = ZoneInfo("UTC")
NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
FLIGHTS = TableShape("flight_date", Grain.DAY, UTC_ZONE, "ts", frozenset({"flight_date", "ts", "carrier", "id"}))
PLANES = TableShape("", Grain.NONE, UTC_ZONE, "", frozenset({"id", "built"}))
SHAPES = {"flights": FLIGHTS, "planes": PLANES}


def read(sql: str, dialect: str = "duckdb", zone: ZoneInfo | None = UTC_ZONE) -> dict[str, TableReads]:
    return {table.dataset: table for table in tables_read(parse_query(sql, dialect), SHAPES, QueryClock(NOW, zone))}


def days(first: str, last: str) -> Interval:
    start, end = (parse_partition_name(name, Grain.DAY, UTC_ZONE) for name in (first, last))
    return Interval(start.start, end.start)


# What is found


@pytest.mark.parametrize(
    "where",
    [
        "flight_date = '2026-11-16'",
        "flight_date >= '2026-11-16' AND flight_date < '2026-11-17'",
        "flight_date BETWEEN '2026-11-16' AND '2026-11-16'",
        "flight_date IN ('2026-11-16')",
        "CAST(flight_date AS DATE) = DATE '2026-11-16'",
        "'2026-11-16' = flight_date",
        "ts >= TIMESTAMP '2026-11-16 00:00:00' AND ts < TIMESTAMP '2026-11-17 00:00:00'",
        "ts >= '2026-11-16T00:00:00Z' AND ts < '2026-11-17T00:00:00Z'",
        "date_trunc('day', ts) = DATE '2026-11-16' AND flight_date <= '2026-11-16'",
        "(flight_date = '2026-11-16' AND carrier = 'AA') OR (flight_date = '2026-11-16' AND id = 3)",
    ],
)
def test_one_day_is_found_however_it_is_written(where: str) -> None:
    table = read(f"SELECT * FROM flights WHERE {where}")["flights"]
    assert (table.ranges, table.bounded) == ((days("2026-11-16", "2026-11-17"),), True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM flights",
        "SELECT * FROM flights WHERE NOT flight_date = '2026-11-16'",
        "SELECT * FROM flights WHERE flight_date = '2026-11-16' OR carrier = 'AA'",
        "SELECT * FROM flights WHERE substr(flight_date, 1, 7) = '2026-11'",
        "SELECT * FROM flights WHERE flight_date >= '2026-11-16 12:00'",
        "SELECT * FROM flights WHERE flight_date > '2026-11-16' AND flight_date < '2026-11-10'",
        "SELECT * FROM flights, (SELECT 1 AS flight_date) x WHERE flight_date = '2026-11-16'",
        "SELECT * FROM flights AS f(id, ts, flight_date, carrier) WHERE flight_date = '2026-11-16'",
        "SELECT '2026-11-16' AS flight_date FROM flights WHERE flight_date = '2026-11-16'",
        "SELECT * FROM flights WHERE flight_date = (SELECT max(flight_date) FROM flights WHERE flight_date < '2026-11-16')",
        "SELECT * FROM flights f LEFT JOIN planes p ON f.flight_date = '2026-11-16'",
        "SELECT * FROM flights f FULL JOIN planes p ON f.flight_date = '2026-11-16'",
    ],
)
def test_what_is_not_sure_is_asked_for_as_a_whole_and_says_so(sql: str) -> None:
    table = read(sql)["flights"]
    assert (table.ranges, table.bounded) == ((EVERYTHING,), False)
    assert "it is asked for as a whole" in table.why


def test_a_table_without_partitions_is_read_as_a_whole() -> None:
    assert "neither a partition column nor an event time" in read("SELECT * FROM planes")["planes"].why


def test_a_time_without_an_offset_is_some_zones() -> None:
    table = read("SELECT * FROM flights WHERE ts >= '2026-11-16T12:00:00'", zone=None)["flights"]
    assert table.ranges[0].start == days("2026-11-15", "2026-11-17").start


def test_a_day_in_new_york_is_its_own() -> None:
    shape = TableShape("flight_date", Grain.DAY, ZoneInfo("America/New_York"))
    (table,) = tables_read(
        parse_query("SELECT * FROM flights WHERE flight_date = '2026-11-01'", "spark"),
        {"flights": shape},
        QueryClock(NOW),
    )
    assert table.ranges[0].length == timedelta(hours=25)


def test_all_uses_of_a_dataset_come_together() -> None:
    table = read(
        "WITH a AS (SELECT * FROM flights WHERE flight_date = '2026-11-02') "
        "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM lake.flights f WHERE f.flight_date = '2026-11-04' AND f.id = a.id)"
    )["flights"]
    assert table.ranges == (days("2026-11-02", "2026-11-03"), days("2026-11-04", "2026-11-05"))


def test_what_an_insert_writes_is_not_read() -> None:
    assert set(read("INSERT INTO planes SELECT id, carrier FROM flights")) == {"flights"}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP TABLE flights", "not DROP"),
        ("SELECT 1; SELECT 2", "not 2 statements"),
        ("SELECT 1", "reads no table"),
        ("SELECT * FROM read_parquet('/etc/passwd')", "which is no dataset"),
        ("SELECT (((", "line 1"),
        ("SELECT " + "(" * 500 + "1" + ")" * 500, "cannot be understood"),
        ("SELECT '" + "x" * MAX_SQL_LENGTH + "' FROM flights", f"{MAX_SQL_LENGTH:,} at most"),
        ("DELETE FROM flights", "not DELETE"),
        ("", "not 0 statements"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_with_the_reason(sql: str, message: str) -> None:
    with pytest.raises(UnsupportedSql) as refused:
        parse_query(sql, "duckdb")
    assert message in str(refused.value)


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(UnsupportedSql, match="Did you mean `postgres`"):
        parse_query("SELECT 1", "postgrse")
