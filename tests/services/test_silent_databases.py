"""A database that goes silent is left in time: before its greeting, between two answers, in the middle of one, and at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from threading import Event, Thread

import pytest
import sqlalchemy as sa

from ingestion.sources import SourceConfig, SourceError
from ingestion.sources.sql.source import SqlSource
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.tables import SqlTable
from lakehub.catalog.storages.sql import SqlStorage
from lakehub.source_databases.engine import CannotOpen, SilentDatabase, SourceConnection, open_database
from lakehub.source_databases.timeouts import Timeouts
from quality.domain.language.measures import ROWS
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sqlalchemy import SqlAlchemyEngine
from tests.tcp_forwarder import TcpForwarder

QUICK = Timeouts(connect=timedelta(seconds=1), silence=timedelta(seconds=1), cancel=timedelta(seconds=1))
IN_TIME_S = 15.0
"""Far more than the time-outs above together, and far less than a driver waits by itself."""
DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mysql+pymysql"}
MANY = {
    "postgresql": "SELECT n, repeat('x', 1000) AS filling FROM generate_series(1, 100000) AS g(n)",
    "mariadb": "SELECT repeat('x', 1000) AS filling FROM COLUMNS AS a, COLUMNS AS b LIMIT 100000",
}
"""Much more than the buffers between two processes hold."""


@pytest.fixture(params=list(DRIVERS))
def server(request: pytest.FixtureRequest) -> sa.URL:
    url = sa.make_url(request.getfixturevalue(f"{request.param}_url")).set(drivername=DRIVERS[request.param])
    return url if url.database else url.set(database="information_schema")


def through(server: sa.URL, forwarder: TcpForwarder) -> str:
    return server.set(host="127.0.0.1", port=forwarder.port, query={}).render_as_string(hide_password=False)


@pytest.fixture
def forwarder(server: sa.URL) -> Iterator[TcpForwarder]:
    with TcpForwarder((server.host or "", server.port or 0)) as opened:
        yield opened


@pytest.fixture
def silent() -> Iterator[TcpForwarder]:
    with TcpForwarder() as opened:
        yield opened


def in_time(work: Callable[[], object]) -> BaseException | None:
    """What it raises; it has ended, and other threads ran all the while: nothing held the interpreter."""
    done, ticks = Event(), list[float]()

    def tick() -> None:
        while not done.wait(0.05):
            ticks.append(time.monotonic())

    Thread(target=tick, daemon=True).start()
    began = time.monotonic()
    try:
        work()
    except Exception as problem:
        raised: BaseException | None = problem
    else:
        raised = None
    done.set()
    assert time.monotonic() - began < IN_TIME_S
    gaps = [after - before for before, after in zip([began, *ticks], ticks, strict=False)]
    assert max(gaps, default=0) < 2
    return raised


def test_a_server_that_never_greets_is_left(server: sa.URL, silent: TcpForwarder) -> None:
    def work() -> None:
        with open_database(through(server, silent), QUICK):
            pytest.fail("nobody has answered")

    assert isinstance(in_time(work), CannotOpen)
    assert silent.accepted >= 1


def test_a_server_that_goes_silent_between_two_statements_is_left(server: sa.URL, forwarder: TcpForwarder) -> None:
    def work(source: SourceConnection) -> None:
        assert source.connection.scalar(sa.text("SELECT 1")) == 1
        forwarder.be_silent()
        with source.at_most(timedelta(seconds=0.5)):  # before the driver itself gives up
            source.connection.scalar(sa.text("SELECT 2"))

    raised = in_time(lambda: opened(server, forwarder, work))
    assert isinstance(raised, SilentDatabase)
    assert "no answer within 0.5 seconds" in str(raised)


def opened(server: sa.URL, forwarder: TcpForwarder, work: Callable[[SourceConnection], object]) -> None:
    with open_database(through(server, forwarder), QUICK) as source:
        work(source)


def test_a_server_that_stops_in_the_middle_of_a_result_is_left(server: sa.URL) -> None:
    def work(source: SourceConnection) -> None:
        query = MANY["postgresql" if server.drivername.startswith("postgresql") else "mariadb"]
        with source.at_most(QUICK.silence):
            for _ in source.connection.execution_options(stream_results=True).execute(sa.text(query)):
                pass

    with TcpForwarder((server.host or "", server.port or 0), silent_after=1_000_000) as forwarder:
        assert isinstance(in_time(lambda: opened(server, forwarder, work)), SilentDatabase)


def test_a_server_that_is_silent_at_the_end_keeps_nobody(server: sa.URL, forwarder: TcpForwarder) -> None:
    """Closing rolls back, which a server answers."""

    def work(source: SourceConnection) -> None:
        source.connection.scalar(sa.text("SELECT 1"))
        forwarder.be_silent()

    in_time(lambda: opened(server, forwarder, work))


def test_what_a_server_was_asked_to_cancel_it_no_longer_does(server: sa.URL, forwarder: TcpForwarder) -> None:
    sleeping = {"postgresql": "SELECT pg_sleep(60)", "mysql": "SELECT SLEEP(60)"}
    running = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'",
        "mysql": "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'",
    }

    def work(source: SourceConnection) -> None:
        with source.at_most(timedelta(milliseconds=300)):
            source.connection.scalar(sa.text(sleeping[source.connection.dialect.name]))

    patient = replace(QUICK, silence=timedelta(seconds=50))

    def look() -> None:
        with open_database(through(server, forwarder), patient) as source:
            work(source)

    in_time(look)
    with open_database(server.render_as_string(hide_password=False)) as source:
        assert source.connection.scalar(sa.text(running[source.connection.dialect.name])) == 0


def test_the_catalog_the_tests_and_ingestion_leave_a_silent_server(
    server: sa.URL, silent: TcpForwarder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehub.catalog.storages.sql.TIMEOUTS", QUICK)
    monkeypatch.setattr("ingestion.sources.sql.table.TIMEOUTS", QUICK)
    monkeypatch.setattr("quality.engines.backends.database_connection.DEFAULT_TIMEOUTS", QUICK)
    url = through(server, silent)
    looks: dict[type[Exception], Callable[[], object]] = {
        MetadataUnavailable: lambda: SqlStorage(url).tables(1),
        SourceError: SqlSource(SourceConfig(url, "flights")).schema,
        CannotRead: lambda: SqlAlchemyEngine().measure(
            Scan(SqlTable(url, "flights"), (ROWS,)), Limits(timeout=timedelta(seconds=1))
        ),
    }
    for expected, look in looks.items():
        raised = in_time(look)
        assert isinstance(raised, expected)
        assert "cannot be read" in str(raised)


def test_ingestion_leaves_a_server_that_stops_between_two_chunks(
    server: sa.URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.sources.sql.table.TIMEOUTS", QUICK)
    table = "pg_catalog.pg_attribute" if server.drivername.startswith("postgresql") else "information_schema.COLUMNS"
    with TcpForwarder((server.host or "", server.port or 0)) as forwarder:
        source = SqlSource(SourceConfig(through(server, forwarder), table, chunk_rows=10))
        source.schema()
        chunks = iter(source.snapshot().batches)
        next(chunks)
        forwarder.be_silent()
        assert isinstance(in_time(lambda: list(chunks)), SourceError)
