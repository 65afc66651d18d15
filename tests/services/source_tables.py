"""Tables on servers that are read as sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import sqlalchemy as sa

from ingestion.sources import SourceConfig
from ingestion.sources.sql.source import SqlSource
from tests.services.database_tables import DRIVERS


@contextmanager
def source_table(
    url: str, fixture: str, *statements: str, keys: tuple[str, ...] = (), cursor: str | None = None
) -> Iterator[SqlSource]:
    """A table of a name of its own, which stands for `{t}` in the statements."""
    with source_and_engine(url, fixture, *statements, keys=keys, cursor=cursor) as (source, _, _):
        yield source


@contextmanager
def source_and_engine(
    url: str, fixture: str, *statements: str, keys: tuple[str, ...] = (), cursor: str | None = None
) -> Iterator[tuple[SqlSource, sa.Engine, str]]:
    """With whoever writes there, and the table's name."""
    address = sa.make_url(url).set(drivername=DRIVERS[fixture])
    if not address.database:
        with sa.create_engine(address).begin() as connection:
            connection.execute(sa.text("CREATE DATABASE IF NOT EXISTS lakehub_tests"))
        address = address.set(database="lakehub_tests")
    engine, name = sa.create_engine(address), f"source_{uuid4().hex}"
    try:
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement.replace("{t}", name))
        config = SourceConfig(
            address.render_as_string(hide_password=False),
            name,
            cursor,
            120.0,
            chunk_rows=2 if keys else 10_000,
            key_columns=keys,
        )
        yield SqlSource(config), engine, name
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
        engine.dispose()
