"""Sides of an exchange on the servers that people have: PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts import test_cross_source as suite
from tests.contracts.test_cross_source import DAY, Make, flights, opened
from tests.services.database_tables import DRIVERS, database_tables


@pytest.fixture(params=DRIVERS)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with database_tables(request, suite.fill) as filled:
        yield filled


@pytest.mark.parametrize(
    "fact",
    [
        suite.test_exactly_the_records_that_are_missing_here_are_named,
        suite.test_a_sample_of_upstream_is_looked_up_and_what_is_missing_is_named,
        suite.test_the_sample_does_not_depend_on_the_order_of_rows,
        suite.test_every_side_writes_the_same_key_alike,
    ],
    ids=lambda fact: fact.__name__.removeprefix("test_"),
)
def test_it_is_like_the_other_sides(make: Make, tmp_path: Path, fact: object) -> None:
    assert callable(fact)
    fact(make, tmp_path)


def test_the_database_chooses_the_sample_and_sends_nothing_else(make: Make, tmp_path: Path) -> None:
    there = opened(make, tmp_path, flights())
    there._batches = lambda: pytest.fail("all the keys were asked for")  # type: ignore[attr-defined]
    assert len(there.sample(50, DAY)) == 50
