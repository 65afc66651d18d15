"""Which tables of a real database could be captured is seen in one look, however many there are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pymysql
import pytest

from ingestion.captures.checks.single import capture_findings
from ingestion.captures.checks.survey import survey_database
from lakehub.catalog.ports import CaptureSurvey
from lakehub.setup.machine import scaled
from tests.polling import wait_until
from tests.services.tapped_server import TappedServer, tapped_server

DATABASE = "lakehub_survey"
UNFIT = {
    "by_parent": ("(id int PRIMARY KEY, trip int, FOREIGN KEY (trip) REFERENCES t0 (id) ON DELETE CASCADE)", "CASCADE"),
    "my`isam": ("(id int PRIMARY KEY) ENGINE=MyISAM", "MyISAM"),
    "versioned": ("(id int PRIMARY KEY) WITH SYSTEM VERSIONING", "WITH SYSTEM VERSIONING"),
    "100% odd": ("(id int PRIMARY KEY, place point)", "GEOMETRY"),
}

LOCKED = ("a1", "a2", "a3")
"""Locks are taken in the order of the names."""


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        tapped.execute("CREATE OR REPLACE USER reader@'127.0.0.1' IDENTIFIED BY 'hunter2'")
        tapped.execute(f"GRANT SELECT ON {DATABASE}.* TO reader@'127.0.0.1'")
        tapped.execute("GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO reader@'127.0.0.1'")
        tapped.execute("CREATE TABLE t0 (id int PRIMARY KEY, twice int AS (id * 2))", "CREATE VIEW v AS SELECT 1 AS n")
        yield tapped
        tapped.execute("DROP USER reader@'127.0.0.1'")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the driver is told, and each connection."""
    query, connect, asked_of_driver = (
        pymysql.connections.Connection.query,
        pymysql.connections.Connection.connect,
        list[str](),
    )

    def counted_query(self: Any, sql: Any, *arguments: Any, **more: Any) -> Any:
        asked_of_driver.append(str(sql))
        return query(self, sql, *arguments, **more)

    def counted_connect(self: Any, *arguments: Any, **more: Any) -> Any:
        asked_of_driver.append("CONNECT")
        return connect(self, *arguments, **more)

    monkeypatch.setattr(pymysql.connections.Connection, "query", counted_query)
    monkeypatch.setattr(pymysql.connections.Connection, "connect", counted_connect)
    return asked_of_driver


def url_of(server: TappedServer) -> str:
    return f"mysql://reader:hunter2@127.0.0.1:{server.url.port}/{DATABASE}"


def survey(server: TappedServer) -> CaptureSurvey:
    return survey_database(url_of(server), lambda names: names)


def test_fifty_tables_are_asked_about_as_often_as_one(server: TappedServer, asked: list[str]) -> None:
    assert list(survey(server).tables) == ["t0"]  # the first look of a process also asks what the server is
    asked.clear()
    survey(server)
    for_one = list(asked)
    many = [f"CREATE TABLE t{number} (id int, n varchar(9), PRIMARY KEY (n, id))" for number in range(1, 50)]
    server.execute(*many)
    asked.clear()
    tables = survey(server).tables
    assert (len(tables), tables["t7"].primary_key, tables["t7"].columns) == (50, ("n", "id"), ("id", "n"))
    assert (asked.count("CONNECT"), len(asked)) == (for_one.count("CONNECT"), len(for_one))
    assert asked.count("CONNECT") == 1


def test_each_table_is_told_what_it_would_be_told_alone(server: TappedServer) -> None:
    named = {name: f"`{name.replace('`', '``')}`".replace("%", "%%") for name in UNFIT}
    server.execute(*(f"CREATE TABLE {named[name]} {columns}" for name, (columns, _) in UNFIT.items()))
    tables = survey(server).tables
    assert set(tables) == {"t0", *UNFIT}
    for name, surveyed in tables.items():
        alone = capture_findings(url_of(server), name)
        findings = surveyed.findings
        assert (findings.of_table, findings.unfit) == (alone.of_table, alone.unfit)
        assert (findings.generated, findings.uncertain_keys) == (alone.generated, alone.uncertain_keys)
        if name in UNFIT:
            assert UNFIT[name][1] in " ".join((*findings.of_table, *findings.unfit.values()))
    assert tables["t0"].findings.generated == {"twice": ("id",)}


def test_one_table_that_the_server_cannot_show_costs_no_other(server: TappedServer) -> None:
    server.execute("CREATE TABLE broken (id int PRIMARY KEY) ENGINE=MERGE UNION=(gone)")
    tables = survey(server).tables
    assert tables["t0"].findings.of_table == ()
    assert "cannot show how the table `lakehub_survey.broken` is defined" in " ".join(
        tables["broken"].findings.of_table
    )


@pytest.mark.usefixtures("renamed")
def test_tables_that_are_locked_are_named_as_such_and_cost_no_other(server: TappedServer) -> None:
    began = time.monotonic()
    tables = survey(server).tables
    assert time.monotonic() - began < scaled(5), "it does not wait for them"
    assert set(tables) == {"t0", "ends", *LOCKED}
    assert tables["t0"].findings.of_table == tables["ends"].findings.of_table == ()
    for name in LOCKED:
        (problem,) = tables[name].findings.of_table
        assert f"cannot show how the table `{DATABASE}.{name}` is defined. It may be locked" in problem
        assert (tables[name].columns, tables[name].primary_key) == ((), ())


@pytest.fixture
def renamed(server: TappedServer) -> Iterator[None]:
    """A RENAME holds the tables of LOCKED alone, and waits for `ends`, which somebody reads."""
    server.execute(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in ("ends", *LOCKED)))
    renames = ", ".join(f"{DATABASE}.{name} TO {DATABASE}.{name}_2" for name in (*LOCKED, "ends"))
    waiting = "SELECT count(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock' AND info LIKE 'RENAME%%'"
    with server.engine.connect() as reader, ThreadPoolExecutor(1) as pool:
        reader.exec_driver_sql(f"SELECT * FROM {DATABASE}.ends")
        rename = pool.submit(server.execute, f"RENAME TABLE {renames}")
        try:
            wait_until(lambda: server.select(waiting)[0][0] == 1)
            yield
        finally:
            reader.rollback()
            rename.result(scaled(30))


def test_a_server_that_cannot_be_tapped_says_so_and_no_table_is_looked_at(server: TappedServer) -> None:
    server.execute("REVOKE BINLOG MONITOR ON *.* FROM reader@'127.0.0.1'")
    choose = Mock()
    looked = survey_database(url_of(server), choose)
    assert ("BINLOG MONITOR" in looked.of_server[0], looked.tables) == (True, {})
    choose.assert_not_called()
