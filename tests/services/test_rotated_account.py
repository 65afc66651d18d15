"""The account of a connection is another one from today on, and the old one is gone: what it leads to did not move."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
import sqlalchemy as sa

from lakehub.catalog.datasets.connection_change import check_connection_change
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(postgresql_url: str) -> Iterator[tuple[sa.URL, sa.Engine]]:
    """A database of its own with a table, which goes away."""
    url = sa.make_url(postgresql_url).set(drivername="postgresql+psycopg")
    name = f"rotated_{uuid4().hex[:12]}"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'CREATE DATABASE "{name}"')
    own = sa.create_engine(url.set(database=name), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with own.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE legs (id int, flown date)")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'CREATE DATABASE "{name}_2" TEMPLATE "{name}"')
    yield url.set(database=name), own
    with engine.connect() as connection:
        for database in (name, f"{name}_2"):
            connection.exec_driver_sql(f'DROP DATABASE "{database}" WITH (FORCE)')
    engine.dispose()


def test_a_rotated_account_moves_nothing_though_the_old_one_is_refused(server: tuple[sa.URL, sa.Engine]) -> None:
    url, engine = server
    role = f"old_{uuid4().hex[:12]}"
    with engine.connect() as connection:
        connection.exec_driver_sql(f'CREATE ROLE "{role}" LOGIN')
    kept = make.connection("ops_db", url.set(username=role).render_as_string(hide_password=False))
    dataset = make.dataset("legs", ingested=False, by_day=False)
    make.feed(dataset, connection=kept, cursor_column="")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'DROP ROLE "{role}"')
    change = check_connection_change(
        kept, url.render_as_string(hide_password=False), actor="ann", now=make.NOW, by_operator=True
    )
    assert (change.readers, change.moved) == (("legs",), ())
    assert change.consequences[0].text.startswith("It leads where it did")

    moved = url.set(database=f"{url.database}_2")
    change = check_connection_change(
        kept, moved.render_as_string(hide_password=False), actor="ann", now=make.NOW, by_operator=True
    )
    assert [copy.dataset.name for copy in change.moved] == ["legs"]
