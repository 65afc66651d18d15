"""What the gate finds that a query reads, held against a database that runs it: outside of it there is nothing that matters.

A query gives the same over the whole table as over the rows in the ranges that were found.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_reads import TableReads, parse_query, tables_read
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.partitions import Grain

UTC_ZONE = ZoneInfo("UTC")
CLOCK = QueryClock(datetime(2026, 11, 17, 19, 32, tzinfo=UTC), UTC_ZONE)
SHAPES = {
    "flights": TableShape("flight_date", Grain.DAY, UTC_ZONE, "ts", frozenset({"flight_date", "ts", "carrier", "id"})),
    "planes": TableShape("", Grain.NONE, UTC_ZONE, "", frozenset({"id", "built"})),
}
DAYS = [date(2026, 11, 1) + timedelta(days=number) for number in range(20)]

some_days = st.sampled_from(DAYS).map(date.isoformat)
typed_days = some_days.map("DATE '{}'".format)
comparisons = st.sampled_from(["=", "<", "<=", ">", ">=", "<>"])
times = st.tuples(some_days, st.sampled_from(["00:00:00", "07:00:00", "23:30:00"])).map(
    lambda pair: f"TIMESTAMP '{pair[0]} {pair[1]}'"
)
names = st.sampled_from(
    [
        "CAST(f.flight_date AS DATE)",
        "f.flight_date::TIMESTAMP",
        "date_trunc('week', f.flight_date::DATE)",
    ]
)
instants = st.sampled_from(
    ["f.ts", "CAST(f.ts AS DATE)", "date_trunc('day', f.ts)", "f.ts::TIMESTAMP", "date_trunc('month', f.ts)"]
)
units = st.sampled_from(["hour", "day", "month"])
atoms = st.one_of(
    st.builds("f.flight_date {} {}".format, comparisons, some_days.map("'{}'".format)),
    st.builds("{} {} {}".format, names, comparisons, typed_days),
    st.builds("{} {} {}".format, instants, comparisons, times | typed_days),
    st.builds("{} {} f.ts".format, times, comparisons),
    st.builds("f.flight_date BETWEEN '{}' AND '{}'".format, some_days, some_days),
    st.builds("f.ts BETWEEN {} AND {}".format, times, times),
    st.builds("f.flight_date IN ('{}', '{}')".format, some_days, some_days),
    st.builds("f.flight_date NOT IN ('{}')".format, some_days),
    st.builds("f.ts < {} + INTERVAL '{}' {}".format, times, st.integers(0, 40), units),
    st.builds("f.ts >= {} - INTERVAL {} DAYS".format, typed_days, st.integers(0, 9)),
    st.sampled_from(
        ["f.carrier = 'AA'", "TRUE", "f.id % 2 = 0", "f.flight_date IS NULL", "f.flight_date LIKE '2026-11-0%'"]
    ),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=5,
)
queries = st.sampled_from(
    [
        "SELECT f.ts FROM flights f WHERE {one}",
        "SELECT f.carrier, count(*) FROM flights f WHERE {one} GROUP BY ALL HAVING max(f.ts) > min(f.ts)",
        "SELECT f.ts FROM flights f JOIN planes p ON f.id = p.id AND {one} WHERE {two}",
        "SELECT f.ts, p.id FROM flights f LEFT JOIN planes p ON f.id = p.id AND {one}",
        "SELECT f.ts, p.id FROM planes p LEFT JOIN flights f ON f.id = p.id AND {one}",
        "SELECT f.ts, p.id FROM planes p LEFT JOIN flights f ON f.id = p.id WHERE {one}",
        "SELECT f.ts, p.id FROM planes p RIGHT JOIN flights f ON f.id = p.id AND {one}",
        "SELECT f.ts, p.id FROM planes p FULL JOIN flights f ON f.id = p.id AND {one} WHERE {two}",
        "SELECT f.ts FROM flights f SEMI JOIN planes p ON f.id = p.id AND {one}",
        "SELECT f.ts FROM flights f ANTI JOIN planes p ON f.id = p.id AND {one}",
        "SELECT p.id FROM planes p ANTI JOIN flights f ON f.id = p.id AND {one}",
        "SELECT p.id FROM planes p WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.id = p.id AND {one})",
        "SELECT p.id, (SELECT max(f.ts) FROM flights f WHERE f.id <= p.id AND {one}) FROM planes p",
        "WITH flights AS (SELECT * FROM flights f WHERE {one}) SELECT f.ts FROM flights f WHERE {two}",
        "SELECT x.ts FROM (SELECT * FROM flights f WHERE {one}) x UNION ALL SELECT f.ts FROM flights f WHERE {two}",
        "SELECT f.ts, g.ts FROM flights f JOIN flights g ON f.id = g.id AND g.flight_date = '2026-11-05' WHERE {one}",
        "SELECT f.ts, row_number() OVER (ORDER BY f.ts) FROM flights f WHERE {one} QUALIFY {two}",
    ]
)


@cache
def database() -> Any:
    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'")
    made.execute("CREATE TABLE every (flight_date VARCHAR, ts TIMESTAMP, carrier VARCHAR, id INTEGER)")
    rows = [
        (day.isoformat(), datetime(day.year, day.month, day.day, hour), "AA" if hour else "BB", number)
        for number, day in enumerate(DAYS)
        for hour in (0, 7, 23)
    ]
    made.executemany("INSERT INTO every VALUES (?, ?, ?, ?)", rows)
    made.execute("CREATE TABLE planes AS SELECT DISTINCT id, 'x' AS built FROM every WHERE id % 2 = 0")
    return made


def answer(sql: str, within: str) -> list[Any]:
    database().execute(f"CREATE OR REPLACE VIEW flights AS SELECT * FROM every WHERE {within}")
    return sorted(database().execute(sql).fetchall(), key=str)


def found(sql: str) -> TableReads:
    by_name = {table.dataset: table for table in tables_read(parse_query(sql, "duckdb"), SHAPES, CLOCK)}
    return by_name["flights"]


def as_condition(read: TableReads) -> str:
    pieces = [
        f"(ts >= '{span.start:%Y-%m-%d %H:%M:%S}' AND ts < '{span.end:%Y-%m-%d %H:%M:%S}')" for span in read.ranges
    ]
    return " OR ".join(pieces)


@given(queries, conditions, conditions)
def test_what_lies_outside_the_ranges_changes_no_answer(query: str, first: str, second: str) -> None:
    sql = query.format(one=first, two=second)
    assert answer(sql, as_condition(found(sql))) == answer(sql, "TRUE"), sql


def test_the_ranges_that_are_found_are_worth_asking_for() -> None:
    sql = "SELECT f.ts FROM flights f WHERE f.flight_date >= '2026-11-03' AND f.ts < TIMESTAMP '2026-11-05 00:00:00'"
    assert len(answer("SELECT * FROM flights", as_condition(found(sql)))) == 6
