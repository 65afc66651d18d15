"""A query on a partition column that says times by a form is bounded by it. `tests/contracts` tries random ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.gate.sql_bounds import TableShape
from incidents.domain.gate.sql_reads import parse_query, tables_read
from incidents.domain.gate.sql_times import QueryClock
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain
from tests.partition_form_queries import asked, form_of

KOLKATA, NEW_YORK, HERE = ZoneInfo("Asia/Kolkata"), ZoneInfo("America/New_York"), ZoneInfo("UTC")
NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "grain", "where", "first", "last"),
    [
        ("%Y%m%d", Grain.DAY, "ds = '20261116'", "2026-11-16", "2026-11-16"),
        ("%Y%m%d", Grain.DAY, "ds = 20261116", "2026-11-16", "2026-11-16"),
        ("%Y%m%d", Grain.DAY, "ds BETWEEN 20261114 AND 20261116", "2026-11-14", "2026-11-16"),
        ("%d.%m.%Y", Grain.DAY, "ds IN ('16.11.2026')", "2026-11-16", "2026-11-16"),
        ("epoch days", Grain.DAY, "ds >= 20771 AND ds < 20774", "2026-11-14", "2026-11-16"),
    ],
)
def test_a_form_bounds_a_query(text: str, grain: Grain, where: str, first: str, last: str) -> None:
    start, end = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, last))
    assert asked(where, form_of(text, grain, HERE)) == ((Interval(start, end + timedelta(days=1)),), True)


@pytest.mark.parametrize("where", ["ds >= '01.11.2026'", "ds >= '2026-11-16'", "CAST(ds AS DATE) = DATE '2026-11-16'"])
def test_what_does_not_compare_as_times_do_bounds_nothing(where: str) -> None:
    assert not asked(where, form_of("%d.%m.%Y", Grain.DAY, HERE))[1]


@pytest.mark.parametrize("grain", [Grain.HOUR, Grain.DAY, Grain.YEAR, Grain.NONE])
@pytest.mark.parametrize(
    "where",
    [
        "at < DATE '9999-12-31' + INTERVAL 1 DAY",
        "date_trunc('month', at) = DATE '9999-12-01'",
        "at > DATE '2026-01-01' - INTERVAL 9999 YEAR",
        "at = CAST('0001-01-02 10:00:00' AS DATE)",
        "ds >= '9999-12-31'",
        "ds <= '0001-01-01'",
    ],
)
def test_the_ends_of_time_bound_nothing_and_break_nothing(where: str, grain: Grain) -> None:
    shape = TableShape("ds", grain, NEW_YORK, "at", frozenset({"ds", "at"}))
    query = parse_query(f"SELECT * FROM t WHERE {where}", "duckdb")
    (reads,) = tables_read(query, {"t": shape}, QueryClock(NOW, HERE))
    assert reads.ranges
