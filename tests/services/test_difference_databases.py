"""Exact comparison where PostgreSQL and MariaDB are a side: they hash their rows themselves, as the other sides do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts import test_difference_sides as suite
from tests.contracts.test_difference_sides import Make, hudi, opened, sqlite
from tests.services.database_tables import DRIVERS, database_tables


@pytest.fixture(params=DRIVERS)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with database_tables(request, suite.fill) as filled:
        yield filled


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
