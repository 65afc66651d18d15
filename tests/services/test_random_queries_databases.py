"""The gate over SQL misses no table and no row, of random queries that PostgreSQL and MariaDB run."""

from __future__ import annotations

import pytest

from tests.contracts.random_queries.fuzz import check_worth, fuzz, number_of_queries, random_seed
from tests.services.random_query_servers import MariaDb, PostgreSql, Server


@pytest.mark.parametrize(("address", "server"), [("postgresql_url", PostgreSql), ("mariadb_url", MariaDb)])
def test_rows_that_are_not_claimed_change_no_answer(
    address: str, server: type[Server], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "url", request.getfixturevalue(address), raising=False)
    outcome = fuzz(server, seed=random_seed(), queries=number_of_queries(200))
    check_worth(outcome, server.dialect)
