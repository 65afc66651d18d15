"""A server that tests may change: other suites use the common one at the same time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.own_mariadb import own_mariadb


@pytest.fixture(scope="session")
def changed_mariadb_url(mariadb_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MariaDB for tests that set what holds for the whole server, or remove files of its binlog."""
    with own_mariadb(tmp_path_factory.mktemp("mariadb") / "changed", 92) as server:
        yield server.url
