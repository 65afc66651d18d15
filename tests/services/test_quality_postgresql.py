"""PostgreSQL answers the engines' contract suite like the others, within its own limits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
import sqlalchemy as sa

from quality.domain.expression.measures import ROWS, Measure
from quality.engines.scan import CannotRead, Limits, One, Part, Scan, SqlTable, Whole
from quality.engines.sqlalchemy import SqlAlchemy
from tests.contracts import test_engines as suite
from tests.contracts.test_engines import DAY, MEASURES, Place


@pytest.fixture(scope="module")
def place(postgresql_url: str) -> Iterator[Place]:
    url = sa.make_url(postgresql_url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    schema, engine = f"engines_{uuid4().hex}", sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    suite.fill(engine, schema)
    yield Place(SqlAlchemy(), *(SqlTable(url, f"{schema}.{name}") for name in ("flights", "planes", "nowhere")))
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))
    engine.dispose()


@pytest.mark.parametrize(
    ("part", "expected"),
    [(Whole(), suite.WHOLE), (One(DAY, "2026-11-15"), suite.FIRST_DAY), (One(DAY, "2027-01-01"), suite.NOTHING)],
    ids=["whole", "first day", "an absent day"],
)
def test_it_measures_a_part(place: Place, part: Part, expected: dict[Measure, object]) -> None:
    assert place.answers(part, *MEASURES) == expected


@pytest.mark.parametrize(
    "fact",
    [
        suite.test_it_measures_each_partition_in_one_go,
        suite.test_rows_alone_are_counted_too,
        suite.test_a_time_is_utc_or_has_no_zone,
        suite.test_a_column_that_is_not_there_costs_only_its_own_measure,
        suite.test_a_sum_of_texts_costs_only_itself,
        suite.test_a_lookup_into_a_column_that_is_not_there_costs_only_itself,
        suite.test_a_target_that_is_not_there_says_so,
        suite.test_all_the_measures_of_a_part_are_one_scan,
        suite.test_names_are_quoted,
        suite.test_values_are_bound,
    ],
    ids=lambda fact: fact.__name__,
)
def test_it_is_like_the_other_engines(place: Place, fact: object) -> None:
    fact(place)  # type: ignore[operator]


def test_a_scan_that_takes_too_long_is_stopped_by_the_database(place: Place) -> None:
    with pytest.raises(CannotRead, match="statement timeout"):
        place.engine.measure(Scan(slow_view(place), (ROWS,)), Limits(timeout=timedelta(milliseconds=50)))


def slow_view(place: Place) -> SqlTable:
    """A view that sleeps."""
    assert isinstance(place.flights, SqlTable)
    schema = place.flights.table.partition(".")[0]
    with sa.create_engine(place.flights.url, poolclass=sa.NullPool).begin() as connection:
        connection.execute(sa.text(f'CREATE OR REPLACE VIEW "{schema}".slow AS SELECT pg_sleep(5)::text AS slept'))
    return SqlTable(place.flights.url, f"{schema}.slow")
