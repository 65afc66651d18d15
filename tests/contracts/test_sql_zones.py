"""What a session's time zone makes of a query, held against a database that has one: no row that is read lies outside the range.

A column of event times may hold instants, or what a clock showed in UTC, in the session's zone, or in the dataset's.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_reads import parse_query, tables_read
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain

HOME = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
SHAPES = {"flights": TableShape("", Grain.NONE, HOME, "ts", frozenset({"ts", "id"}))}
SESSIONS = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Asia/Kathmandu")
COLUMNS = {
    "instants": "moment",
    "what a clock showed in UTC": "timezone('UTC', moment)",
    "what a clock showed in the session": "moment::TIMESTAMP",
    "what a clock showed in the dataset's zone": f"timezone('{HOME.key}', moment)",
}
HOURS = "range(TIMESTAMPTZ '2026-10-31 00:00+00', TIMESTAMPTZ '2026-11-03 12:00+00', INTERVAL 1 HOUR)"
"""New York and Los Angeles put their clocks back in between."""

clocks = st.builds(
    "2026-11-{:02} {:02}:{}".format, st.integers(1, 3), st.integers(0, 23), st.sampled_from(["00", "30"])
)
constants = st.one_of(
    st.builds("TIMESTAMP '{}'".format, clocks),
    st.builds("TIMESTAMPTZ '{}'".format, clocks),
    st.builds("'{}'".format, clocks),
    st.builds("TIMESTAMPTZ '{}{}'".format, clocks, st.sampled_from(["+00", "+09", "-05"])),
    st.builds("DATE '2026-11-{:02}'".format, st.integers(1, 3)),
)
columns = st.sampled_from(["ts", "ts::TIMESTAMP", "ts::TIMESTAMPTZ", "CAST(ts AS DATE)", "date_trunc('day', ts)"])
conditions = st.builds("{} {} {}".format, columns, st.sampled_from(["<", "<=", ">", ">=", "="]), constants)


@cache
def database(session: str, holds: str) -> Any:
    made = duckdb.connect()
    made.execute(f"SET TimeZone = '{session}'")
    made.execute(f"CREATE TABLE hours AS SELECT unnest({HOURS}) AS moment")
    made.execute(f"CREATE TABLE flights AS SELECT moment, {COLUMNS[holds]} AS ts FROM hours")
    return made


def ranges(where: str, session: str) -> tuple[Interval, ...]:
    query = parse_query(f"SELECT * FROM flights WHERE {where}", "duckdb")
    (table,) = tables_read(query, SHAPES, QueryClock(NOW, ZoneInfo(session)))
    return table.ranges


def read_by(where: str, session: str, holds: str) -> list[datetime]:
    rows = database(session, holds).execute(f"SELECT epoch(moment) FROM flights WHERE {where}").fetchall()
    return [datetime.fromtimestamp(seconds, UTC) for (seconds,) in rows]


@given(conditions, st.sampled_from(SESSIONS), st.sampled_from(list(COLUMNS)))
def test_no_row_that_is_read_lies_outside(where: str, session: str, holds: str) -> None:
    read_ranges = ranges(where, session)
    outside = [
        at for at in read_by(where, session, holds) if not any(span.start <= at < span.end for span in read_ranges)
    ]
    assert outside == [], f"{where} in {session} of {holds}: {read_ranges}"


@pytest.mark.parametrize(
    ("where", "session", "end"),
    [
        ("ts < TIMESTAMP '2026-11-02 00:00'", "UTC", "2026-11-02T05:00"),  # midnight of New York, if it shows that
        ("ts < TIMESTAMP '2026-11-02 00:00'", "Asia/Tokyo", "2026-11-02T05:00"),
        ("ts < TIMESTAMP '2026-11-02 00:00'", "America/Los_Angeles", "2026-11-02T08:00"),
        ("ts < TIMESTAMPTZ '2026-11-02 00:00+00'", "Asia/Tokyo", "2026-11-02T14:00"),  # 09:00 in Tokyo, and in New York
    ],
)
def test_a_constant_means_the_latest_that_it_can(where: str, session: str, end: str) -> None:
    (span,) = ranges(where, session)
    assert f"{span.end:%Y-%m-%dT%H:%M}" == end
