"""Lakehub's own database is no source, whatever leads to it: it is the server that says which database it is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
import sqlalchemy as sa
from django.db import ConnectionHandler
from django.test import Client

from lakehub import environment, health
from lakehub.catalog import connection_guard
from lakehub.catalog.connection_guard import own_database_check
from lakehub.catalog.storages.sql import SqlStorage
from lakehub.kernel.errors import Refused
from tests.polling import scaled
from tests.tcp_forwarder import TcpForwarder

pytestmark = pytest.mark.django_db


@pytest.fixture
def own(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[sa.URL]:
    """A database of a server that Lakehub itself uses in this test."""
    url, name = sa.make_url(postgresql_url).set(drivername="postgresql"), f"own_{uuid4().hex[:12]}"
    server = sa.create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f'CREATE DATABASE "{name}"')
    opened = ConnectionHandler({"default": environment.database(str(url.set(database=name)))})["default"]
    monkeypatch.setattr(connection_guard, "own", opened)
    yield url.set(database=name)
    opened.close()
    with server.connect() as connection:
        connection.exec_driver_sql(f'DROP DATABASE "{name}" WITH (FORCE)')
    server.dispose()


@pytest.fixture
def forwarder(own: sa.URL) -> Iterator[TcpForwarder]:
    with TcpForwarder((own.host or "", own.port or 0)) as opened:
        yield opened


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "LOCALHOST"])
def test_it_is_known_behind_a_proxy_on_another_port(host: str, own: sa.URL, forwarder: TcpForwarder) -> None:
    storage = SqlStorage(f"postgresql+psycopg://{own.username}@{host}:{forwarder.port}/{own.database}")
    with pytest.raises(Refused, match="own database"):
        own_database_check()(storage, storage.location())
    assert forwarder.accepted


def test_it_is_known_by_an_account_to_which_the_server_tells_little(own: sa.URL, forwarder: TcpForwarder) -> None:
    role, engine = f"little_{uuid4().hex[:12]}", sa.create_engine(own.set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f'CREATE ROLE "{role}" LOGIN')
        connection.exec_driver_sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    try:
        storage = SqlStorage(f"postgresql+psycopg://{role}@127.0.0.1:{forwarder.port}/{own.database}")
        assert len(storage.database_identities()) == 1
        with pytest.raises(Refused, match="own database"):
            own_database_check()(storage, storage.location())
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
            connection.exec_driver_sql(f'DROP ROLE "{role}"')
        engine.dispose()


def test_another_database_of_its_server_is_a_source(own: sa.URL, forwarder: TcpForwarder) -> None:
    storage = SqlStorage(f"postgresql+psycopg://{own.username}@127.0.0.1:{forwarder.port}/template1")
    own_database_check()(storage, storage.location())
    assert forwarder.accepted


def test_ready_says_that_a_server_has_gone_silent_also_on_a_connection_that_is_kept(
    own: sa.URL, forwarder: TcpForwarder, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(own.set(host="127.0.0.1", port=forwarder.port))
    kept = ConnectionHandler({"default": environment.database(url)})["default"]
    monkeypatch.setattr(health, "connection", kept)
    seconds = itertools.count(step=10)
    verdict = health.RecentVerdict(health.ask_database, monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr(health, "database_verdict", verdict)
    try:
        assert Client().get("/ready").status_code == 200
        forwarder.be_silent()
        began = time.monotonic()
        answer = Client().get("/ready")
        assert (answer.status_code, answer.json()["database"]) == (503, "OperationalError")
        assert time.monotonic() - began < scaled(30)
        forwarder.speak_again()
        assert Client().get("/ready").status_code == 200
    finally:
        kept.close()
