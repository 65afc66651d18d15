"""Times of servers that live in a zone, and times that Python does not have: no row is lost, late or handed over twice, and none stops its table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import sqlalchemy as sa

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.sources import has_changes
from ingestion.sources.sql.source import SqlSource
from ingestion.spark.loading.fitting import FitRules, fit_rows
from tests.services.database_tables import DRIVERS
from tests.services.source_tables import source_and_engine, source_table

CLOCKS_GO_BACK = datetime(2026, 10, 25, 1, tzinfo=UTC)
"""In Berlin: 03:00 is 02:00 again."""


def ids(source: SqlSource, position: Position | None, upto: datetime | None = None) -> tuple[list[int], Position]:
    reading = source.snapshot(upto=upto) if position is None else source.changes(position, upto=upto)
    return [key for batch in reading.batches for key in batch.columns["id"]], reading.position()


def test_instants_of_postgresql_have_an_order_where_the_clocks_go_back(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session's zone was the server's: rows behind the hour that comes twice were handed over again, as new."""
    monkeypatch.setenv("PGTZ", "Europe/Berlin")
    create = "CREATE TABLE {t} (id int, at timestamptz)"
    with source_and_engine(postgresql_url, "postgresql_url", create, cursor="at") as (source, engine, name):

        def put(key: int, seconds: int) -> None:
            at = CLOCKS_GO_BACK + timedelta(seconds=seconds)
            with engine.begin() as connection:
                connection.execute(sa.text(f"INSERT INTO {name} VALUES (:id, :at)"), {"id": key, "at": at})

        put(1, -30)
        handed, position = ids(source, None)
        for key, seconds in ((2, -10), (3, 10), (4, 20)):
            put(key, seconds)
        more, position = ids(source, position)
        assert (handed, more) == ([1], [2, 3, 4])
        assert position["watermark"] == {"type": "datetime", "value": "2026-10-25T01:00:20+00:00"}
        assert ids(source, position)[0] == []


@pytest.fixture
def mariadb_in_new_york(changed_mariadb_url: str) -> Iterator[str]:
    address = sa.make_url(changed_mariadb_url).set(drivername=DRIVERS["mariadb_url"])
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    with engine.connect() as connection:
        before = connection.execute(sa.text("SELECT @@global.time_zone")).scalar()
        connection.execute(sa.text("SET GLOBAL time_zone = '-05:00'"))
        try:
            yield changed_mariadb_url
        finally:
            connection.execute(sa.text("SET GLOBAL time_zone = :zone"), {"zone": before})


def test_a_timestamp_of_mariadb_is_the_instant_that_it_means(mariadb_in_new_york: str) -> None:
    """It was the server's local time: read hours late east of Greenwich, and lost where the clocks go back."""
    create = "CREATE TABLE {t} (id int, at timestamp, plain datetime)"
    row = "INSERT INTO {t} VALUES (1, '2026-11-16 03:00:00', '2026-11-16 03:00:00')"
    with source_table(mariadb_in_new_york, "mariadb_url", create, row, cursor="at") as source:
        assert ids(source, None, upto=datetime(2026, 11, 16, 7, 59, tzinfo=UTC))[0] == []
        handed, position = ids(source, None, upto=datetime(2026, 11, 16, 8, tzinfo=UTC))
        (batch,) = source.snapshot().batches
    assert (handed, position["watermark"]) == ([1], {"type": "datetime", "value": "2026-11-16T08:00:00"})
    assert batch.columns["plain"] == (datetime(2026, 11, 16, 3),), "a DATETIME has no zone, and stays as it is"


@pytest.mark.parametrize("value", ["infinity", "-infinity", "0044-03-15 BC", "10000-01-01"])
def test_a_time_that_python_does_not_have_is_a_rejected_row(postgresql_url: str, value: str) -> None:
    """One of them stopped the load and each look at the table."""
    create = "CREATE TABLE {t} (id int, at timestamptz, valid_to timestamp, day date)"
    rows = (
        f"INSERT INTO {{t}} VALUES (1, '2026-11-16 08:00Z', '{value}', '2026-11-16'), (2, '{value}', NULL, NULL),"
        f" (3, '2026-11-16 08:00Z', NULL, '{value}'), (4, '2026-11-16 08:00Z', '2026-11-16 08:00', NULL)"
    )
    with source_table(postgresql_url, "postgresql_url", create, rows, cursor="at") as source:
        reading = source.snapshot()
        (batch,) = reading.batches
        fitted = fit_rows(batch, FitRules(source.schema()))
        assert not has_changes(source, reading.position())
    assert fitted.rows["id"].to_pylist() == [4]
    assert [row.column for row in fitted.rejected] == ["valid_to", "at", "day"]
    assert reading.unusable_cursors().rows == 1


@pytest.mark.parametrize("rows", [1, 3])
def test_a_key_with_dates_that_python_does_not_have_is_read_to_its_end(postgresql_url: str, rows: int) -> None:
    """The step after such a date asked for `date > text`, which there is not."""
    days = ["-infinity", "0044-03-15 BC", "2026-11-16", "2026-11-17", "2026-11-18", "10000-01-01", "infinity"]
    values = ", ".join(f"('{day}')" for day in days)
    create, insert = "CREATE TABLE {t} (id date PRIMARY KEY)", f"INSERT INTO {{t}} VALUES {values}"
    handed: list[str] = []
    after, has_more = None, True
    with source_table(postgresql_url, "postgresql_url", create, insert, keys=("id",)) as source:
        while has_more:
            reading = source.snapshot(after=after, limits=BatchLimits(rows=rows))
            handed += [str(day) for batch in reading.batches for day in batch.columns["id"]]
            after, has_more = reading.position(), reading.has_more()
    assert sorted(handed) == sorted(days)


@pytest.mark.parametrize("limits", [UNLIMITED, BatchLimits(rows=2)])
def test_a_cursor_that_is_no_number_stops_no_look(postgresql_url: str, limits: BatchLimits) -> None:
    create, rows = "CREATE TABLE {t} (id int, at numeric)", "INSERT INTO {t} VALUES (1, 1), (2, 2), (3, 'NaN')"
    with source_and_engine(postgresql_url, "postgresql_url", create, rows, cursor="at") as (source, engine, name):
        handed, position = ids(source, None)
        assert (handed, position["watermark"]) == ([1, 2, 3], {"type": "Decimal", "value": "2"})
        assert not has_changes(source, position)
        with engine.begin() as connection:
            connection.exec_driver_sql(f"INSERT INTO {name} VALUES (4, 3)")
        reading = source.changes(position, limits=limits)
        assert [key for batch in reading.batches for key in batch.columns["id"]] == [4]


@pytest.mark.parametrize("kind", ["numeric(10,2)", "numeric", "double precision", "bigint"])
def test_a_backfill_asks_for_whole_numbers_of_any_kind(postgresql_url: str, kind: str) -> None:
    create, rows = f"CREATE TABLE {{t}} (id int, day {kind})", "INSERT INTO {t} VALUES (1, 20261116), (2, 20261117)"
    with source_table(postgresql_url, "postgresql_url", create, rows) as source:
        (batch,) = source.snapshot(only={"day": ["20261116"]}).batches
    assert (batch.columns["id"], Decimal(batch.columns["day"][0])) == ((1,), Decimal(20261116))
