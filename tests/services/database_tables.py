"""Tables on the servers that people have, for facts that hold of every side of an exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest
import sqlalchemy as sa

from lakehub.catalog.metadata.tables import SqlTable, StoredTable

DRIVERS = {"postgresql_url": "postgresql+psycopg", "mariadb_url": "mariadb+pymysql"}
Rows = TypeVar("Rows")


@contextmanager
def database_tables(
    request: pytest.FixtureRequest, fill: Callable[[sa.Engine, str, Rows], None]
) -> Iterator[Callable[[Path, Rows], tuple[str, StoredTable]]]:
    """Makes tables with names of their own on the server that the fixture's parameter names; they are gone afterwards."""
    url = sa.make_url(request.getfixturevalue(request.param)).set(drivername=DRIVERS[request.param])
    if not url.database:
        with sa.create_engine(url).begin() as connection:
            connection.execute(sa.text("CREATE DATABASE IF NOT EXISTS lakehub_tests"))
        url = url.set(database="lakehub_tests")
    engine, names = sa.create_engine(url), list[str]()

    def filled(folder: Path, rows: Rows) -> tuple[str, StoredTable]:
        names.append(f"rows_{uuid4().hex}")
        fill(engine, names[-1], rows)
        return "sqlalchemy", SqlTable(url.render_as_string(hide_password=False), names[-1])

    yield filled
    with engine.begin() as connection:
        for name in names:
            connection.execute(sa.text(f"DROP TABLE {name}"))
    engine.dispose()
