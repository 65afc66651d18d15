"""The gate over SQL misses no table and no row, of random queries that PostgreSQL and MariaDB run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from tests.contracts.random_queries.engines import DoesNotRun
from tests.contracts.random_queries.fuzz import check_worth, fuzz, number_of_queries, random_seed
from tests.contracts.random_queries.tables import SHAPES, random_rows
from tests.services.own_mariadb import own_mariadb
from tests.services.random_query_servers import MariaDb, PostgreSql, Server


@pytest.fixture
def postgresql(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> type[Server]:
    monkeypatch.setattr(PostgreSql, "url", postgresql_url, raising=False)
    return PostgreSql


@pytest.fixture(scope="module")
def mariadb(mariadb_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Server]]:
    with (
        own_mariadb(tmp_path_factory.mktemp("mariadb") / "random", 93) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(MariaDb, "server", server, raising=False)
        patch.setattr(MariaDb, "url", server.url, raising=False)
        yield MariaDb


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_rows_that_are_not_claimed_change_no_answer(server: str, request: pytest.FixtureRequest) -> None:
    engine = request.getfixturevalue(server)
    outcome = fuzz(engine, seed=random_seed(), queries=number_of_queries(200))
    check_worth(outcome, engine.dialect)


def test_a_query_that_ends_the_server_is_one_that_does_not_run(mariadb: type[MariaDb]) -> None:
    query, rows = "SELECT id FROM flights", {name: random_rows(name, Random(1), as_text=False) for name in SHAPES}
    with closing(mariadb(rows)) as engine:
        before = engine.answer(query)
        mariadb.server.kill()
        with pytest.raises(DoesNotRun):
            engine.answer(query)
        assert engine.answer_after(query, {}) == engine.answer(query) == before
