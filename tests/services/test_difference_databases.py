"""Exact comparison where PostgreSQL and MariaDB are a side: they hash their rows themselves, as the other sides do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from lakehub.catalog.metadata.tables import SqlTable, StoredTable
from tests.contracts import test_difference_sides as suite
from tests.contracts.test_difference_sides import Make, Record, hudi, opened, sqlite

DRIVERS = {"postgresql_url": "postgresql+psycopg", "mariadb_url": "mariadb+pymysql"}


@pytest.fixture(params=DRIVERS)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes tables with names of their own, gone afterwards."""
    url = sa.make_url(request.getfixturevalue(request.param)).set(drivername=DRIVERS[request.param])
    if not url.database:
        with sa.create_engine(url).begin() as connection:
            connection.execute(sa.text("CREATE DATABASE IF NOT EXISTS lakehub_tests"))
        url = url.set(database="lakehub_tests")
    engine, names = sa.create_engine(url), list[str]()

    def filled(folder: Path, rows: list[Record]) -> tuple[str, StoredTable]:
        names.append(f"records_{uuid4().hex}")
        suite.fill(engine, names[-1], rows)
        return "sqlalchemy", SqlTable(url.render_as_string(hide_password=False), names[-1])

    yield filled
    with engine.begin() as connection:
        for name in names:
            connection.execute(sa.text(f"DROP TABLE {name}"))
    engine.dispose()


def test_it_is_like_the_lake(make: Make, tmp_path: Path) -> None:
    suite.check_the_same_rows(make, hudi, tmp_path / "same")
    suite.check_a_damaged_copy(make, hudi, tmp_path / "here")
    suite.check_a_damaged_copy(hudi, make, tmp_path / "there")


def test_it_is_like_another_database_and_like_itself(make: Make, tmp_path: Path) -> None:
    suite.check_a_damaged_copy(make, sqlite, tmp_path / "here")
    suite.check_a_damaged_copy(make, make, tmp_path / "both")


@pytest.mark.parametrize(
    "fact",
    [
        suite.test_only_the_tested_day_is_compared,
        suite.test_a_key_that_is_doubled_on_both_sides_differs_only_where_its_rows_do,
        suite.test_of_an_empty_side_all_is_missing_and_of_an_empty_other_side_nothing,
        suite.test_more_rows_than_are_fetched_at_once,
    ],
    ids=lambda fact: fact.__name__.removeprefix("test_"),
)
def test_it_is_like_the_other_sides(make: Make, tmp_path: Path, fact: object) -> None:
    assert callable(fact)
    fact(make, tmp_path)


def test_the_database_sends_sums_and_no_rows(make: Make, tmp_path: Path) -> None:
    rows = suite.records()
    here, there = opened(make, tmp_path / "here", rows), opened(make, tmp_path / "there", rows)
    for endpoint in (here, there):
        endpoint._reader.batches = lambda names: pytest.fail("all rows were asked for")  # type: ignore[attr-defined]
    assert suite.compared(here, there)["differing"] == 0
