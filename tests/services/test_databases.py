"""PostgreSQL and MariaDB answer the engines' contract suite like the others, read only, and within their limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from uuid import uuid4

import pytest
import sqlalchemy as sa

from lakehub.catalog.metadata import Drawn
from lakehub.catalog.metadata.tables import SqlTable
from lakehub.catalog.storages import STORAGES
from lakehub.kernel.outcome import Outcome
from quality.domain.language.measures import ROWS, Measure
from quality.domain.language.values import Failed
from quality.engines.backends.database_connection import open_connection
from quality.engines.backends.database_dialects import _DATABASES, DatabaseDialect
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sqlalchemy import SqlAlchemyEngine
from tests.contracts import answer_tables, test_engines
from tests.contracts import flight_tables as tables
from tests.contracts.engine_answers import ALL, Place, every_fact, measure
from tests.services.database_roles import database_roles, reading

DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mysql+pymysql"}
SLOW = {
    "postgresql": "SELECT a.n * b.n AS slept FROM generate_series(1, 100000) AS a(n), generate_series(1, 100000) AS b(n)",
    "mariadb": "SELECT a.seq * b.seq AS slept FROM {0}.seq_1_to_100000 AS a, {0}.seq_1_to_100000 AS b",
}
"""Minutes of work."""


@pytest.fixture(scope="module", params=list(DRIVERS))
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str, str]]:
    """Its name, its URL, and a schema that goes away."""
    url = sa.make_url(request.getfixturevalue(f"{request.param}_url")).set(drivername=DRIVERS[request.param])
    schema, engine = f"engines_{uuid4().hex}", sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    yield request.param, url.render_as_string(hide_password=False), schema
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=request.param == "postgresql"))
    engine.dispose()


@pytest.fixture(scope="module")
def reader(server: tuple[str, str, str]) -> Iterator[Callable[[], str]]:
    """The URL of a role that reads all tables that the schema has by then: no other runs what people write."""
    name, url, schema = server
    with database_roles(sa.make_url(url)) as role:
        grants = reading(schema, postgresql=name == "postgresql")
        yield lambda: role(grants).render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def place(server: tuple[str, str, str], reader: Callable[[], str]) -> Place:
    _, url, schema = server
    filled = answer_tables.filled(url, schema)
    read_from = reader()
    tables = (SqlTable(read_from, table.table) for table in (filled.table, filled.words, filled.numbers))
    return Place(filled.engine, *tables, filled.zones)


@every_fact
def test_it_answers_like_the_other_engines(place: Place, fact: Callable[[Place], None]) -> None:
    fact(place)


def test_the_key_of_a_large_table_is_looked_at_in_a_sample_that_says_how_it_was_drawn(
    server: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, url, schema = server
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE {schema}.many (id INTEGER, day VARCHAR(10))"))
        for start in range(0, 40_000, 10_000):
            rows = [
                {"id": number // 2, "day": None if number % 100 == 0 else "d"}
                for number in range(start, start + 10_000)
            ]
            connection.execute(sa.text(f"INSERT INTO {schema}.many VALUES (:id, :day)"), rows)
        if name == "postgresql":
            connection.execute(sa.text(f"ANALYZE {schema}.many"))
    storage = STORAGES.get("sql")(url)
    whole = storage.key_evidence(f"{schema}.many", ["id", "day"])
    assert (whole.rows, whole.nulls, whole.null_columns, whole.drawn) == (40_000, 400, {"day": 400}, Drawn.ALL)
    for limit in ("EVIDENCE_LIMIT", "SAMPLE_ROWS"):
        monkeypatch.setattr(f"lakehub.catalog.storages.sql.evidence.{limit}", 10_000)
    evidence = storage.key_evidence(f"{schema}.many", ["id"])
    if name == "postgresql":
        assert (evidence.drawn, evidence.total) == (Drawn.BY_BLOCK, 40_000)
        assert 4_000 < evidence.rows < 16_000
        assert evidence.repeats > 0.8 * evidence.distinct
        assert evidence == storage.key_evidence(f"{schema}.many", ["id"])
        assert f"a random sample of {evidence.rows:,} of 40,000 rows, seed 17: random blocks" in evidence.sentence
    else:
        assert (evidence.drawn, evidence.rows, evidence.total) == (Drawn.FIRST, 10_000, None)


@pytest.mark.parametrize(
    "fact",
    [
        test_engines.test_it_measures_each_partition_in_one_go,
        test_engines.test_a_time_is_utc_or_has_no_zone,
        test_engines.test_a_target_that_is_not_there_says_so,
        test_engines.test_names_are_quoted,
        test_engines.test_values_are_bound,
    ],
    ids=lambda fact: fact.__name__,
)
def test_it_holds_what_the_engines_of_the_lake_hold(flights: tables.Place, fact: Callable[..., None]) -> None:
    fact(flights)


@pytest.fixture(scope="module")
def flights(server: tuple[str, str, str]) -> tables.Place:
    _, url, schema = server
    engine = sa.create_engine(url)
    tables.fill(engine, schema)
    engine.dispose()
    names = ("flights", "planes", "nowhere")
    return tables.Place(SqlAlchemyEngine(), *(SqlTable(url, f"{schema}.{name}") for name in names))


@pytest.fixture
def slow(server: tuple[str, str, str]) -> SqlTable:
    """A view that takes minutes."""
    name, url, schema = server
    with sa.create_engine(url, poolclass=sa.NullPool).begin() as connection:
        quoted = connection.dialect.identifier_preparer.quote
        connection.exec_driver_sql(
            f"CREATE OR REPLACE VIEW {quoted(schema)}.slow AS {SLOW[name].format(quoted(schema))}"
        )
    return SqlTable(url, f"{schema}.slow")


def test_a_slow_scan_is_cut_by_the_database(slow: SqlTable) -> None:
    filled = Measure("maximum", ("slept",))
    measured = SqlAlchemyEngine().measure(Scan(slow, (ROWS, filled)), Limits(timeout=timedelta(milliseconds=200)))
    assert measured.answers[filled] == Failed(Outcome.ERROR, "the scan took longer than its timeout")
    assert measured.scan_count == 1  # what took too long is not tried again in halves
    assert not _sleeping(slow)


def test_a_slow_query_of_a_person_is_cut_by_the_database(slow: SqlTable, reader: Callable[[], str]) -> None:
    slow = SqlTable(reader(), slow.table)
    query = measure("query", values=("SELECT count(slept) FROM this",))
    measured = SqlAlchemyEngine().measure(Scan(slow, (query,)), Limits(timeout=timedelta(milliseconds=200)))
    assert measured.answers[query] == Failed(Outcome.ERROR, "the scan took longer than its timeout")


def _sleeping(table: SqlTable) -> int:
    """How many statements of ours still run in the server."""
    with sa.create_engine(table.url, poolclass=sa.NullPool).connect() as connection:
        activity = {
            "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%slow%' AND pid <> pg_backend_pid()",
            "mysql": "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%slow%' AND id <> connection_id()",
        }
        return int(connection.scalar(sa.text(activity[connection.dialect.name])))


def _without_bounds(connection: sa.Connection) -> DatabaseDialect:
    return DatabaseDialect(_DATABASES[connection.dialect.name].dialect)


def test_what_a_database_does_not_stop_by_itself_is_cancelled(slow: SqlTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quality.engines.backends.database_dialects.DatabaseDialect.for_connection", _without_bounds)
    monkeypatch.setattr("quality.engines.backends.database_connection._CANCEL_AFTER", timedelta())
    measured = SqlAlchemyEngine().measure(
        Scan(slow, (measure("maximum", "slept"),)), Limits(timeout=timedelta(milliseconds=200))
    )
    assert list(measured.answers.values()) == [Failed(Outcome.ERROR, "the scan took longer than its timeout")]
    assert not _sleeping(slow)


def test_nothing_can_be_written(place: Place, server: tuple[str, str, str]) -> None:
    """Also by a role that may."""
    table = SqlTable(server[1], place.words.table)
    with pytest.raises(CannotRead, match=r"(?i)read[- ]only"), open_connection(table, Limits()) as connection:
        quoted = connection.dialect.identifier_preparer.quote
        schema, _, name = place.words.table.rpartition(".")
        connection.exec_driver_sql(f"DELETE FROM {quoted(schema)}.{quoted(name)}")


def test_the_statements_do_not_grow_with_the_measures(place: Place) -> None:
    counts = [_statements(place, ALL[:count]) for count in (1, 20, len(ALL))]
    assert counts == [2, 2, 2]  # one to bind, one to ask


def _statements(place: Place, measures: Sequence[Measure]) -> int:
    """How many statements count rows of the table."""
    seen: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        place.measured(*measures)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    return len([text for text in seen if "odd." in text and "COUNT(" in text])
