"""The newest values of a column stand for the whole table, or it says of how many rows they are."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pytest

from lakehub.catalog.metadata import VALUES_LIMIT
from lakehub.catalog.onboarding.column_proposals import propose_columns
from lakehub.catalog.onboarding.partition_proposal import sample_problem
from lakehub.catalog.storages import STORAGES, Storage
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import partition_form

UTC = ZoneInfo("UTC")


def proposal(source: Storage, table: str) -> str:
    (proposed,) = propose_columns(source.describe(table), source, table, partition=True, event_time=False, zone=UTC)
    return proposed.reason


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_newest_value_of_files_is_that_of_all_rows(tmp_path: Path, ending: str) -> None:
    """It was that of the first million rows in the order of the file: the oldest ones, mostly."""
    days = f"SELECT DATE '2020-01-01' + (i // {VALUES_LIMIT})::INT AS day FROM range({VALUES_LIMIT} + 1) AS rows(i)"
    duckdb.sql(f"COPY ({days}) TO '{tmp_path / f'days.{ending}'}'")
    source = STORAGES.get("files")(tmp_path.as_uri())
    assert proposal(source, f"*.{ending}") == (
        "By its values `day` says the partition, by day, written as `time`: 2020-01-02 = 2 January 2020, UTC."
    )


def test_of_a_column_like_a_key_the_newest_are_those_of_all_rows_and_different(tmp_path: Path) -> None:
    """Each minute is there twice."""
    minutes = "SELECT TIMESTAMP '2020-01-01' + (i // 2) * INTERVAL 1 MINUTE AS at FROM range(1200000) AS rows(i)"
    duckdb.sql(f"COPY ({minutes}) TO '{tmp_path / 'minutes.parquet'}'")
    newest = STORAGES.get("files")(tmp_path.as_uri()).newest_values("*.parquet", ["at"], 500)
    last = datetime(2020, 1, 1) + timedelta(minutes=599_999)
    assert [value for (value,) in newest.values] == [last - timedelta(minutes=back) for back in range(500)]
    assert newest.scope == ""


@pytest.fixture(scope="module")
def of_a_million_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ops") / "ops.db"
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {VALUES_LIMIT})"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE days (day TEXT)")
        db.execute(f"{numbers} INSERT INTO days SELECT '2020-01-01' FROM n")
    return file


def test_of_a_larger_table_in_a_database_it_says_of_which_rows(of_a_million_rows: Path) -> None:
    source = STORAGES.get("sql")(f"sqlite:///{of_a_million_rows}")
    assert (
        proposal(source, "days") == "By its values `day` says the partition, by day: 2020-01-01 = 1 January 2020, UTC."
    )
    with sqlite3.connect(of_a_million_rows) as db:
        db.execute("INSERT INTO days VALUES ('2026-11-16')")
    assert proposal(source, "days") == (
        "By its values `day` says the partition, by day: 2020-01-01 = 1 January 2020, UTC "
        "(the newest of the first 1,000,000 rows)."
    )
    problem = sample_problem(
        partition_form("day", Grain.DAY, UTC, "%Y%m%d"), source.newest_values("days", ["day"], 500)
    )
    assert problem.startswith("None of the 1 values looked at, of the first 1,000,000 rows, says a day")
