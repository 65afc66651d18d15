"""Roles on the servers that people have; they are gone afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sa

PASSWORD = "only for tests"


@contextmanager
def database_roles(url: sa.URL) -> Iterator[Callable[[Sequence[str]], sa.URL]]:
    """Makes roles that hold `grants`, statements with {role} in them, and gives their URLs."""
    admin, names = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool), list[str]()
    is_postgresql = url.get_backend_name() == "postgresql"

    def made(grants: Sequence[str]) -> sa.URL:
        name = f"role_{uuid4().hex[:8]}"
        role = name if is_postgresql else f"'{name}'@'127.0.0.1'"
        create = "CREATE ROLE {0} LOGIN PASSWORD '{1}'" if is_postgresql else "CREATE USER {0} IDENTIFIED BY '{1}'"
        with admin.connect() as connection:
            connection.exec_driver_sql(create.format(role, PASSWORD))
            names.append(role)
            for grant in grants:
                connection.exec_driver_sql(grant.format(role=role))
        return url.set(username=name, password=PASSWORD)

    yield made
    with admin.connect() as connection:
        for role in names:
            if is_postgresql:
                connection.exec_driver_sql(f"DROP OWNED BY {role}")
            connection.exec_driver_sql(f"DROP {'ROLE' if is_postgresql else 'USER'} {role}")
    admin.dispose()


def reading(schema: str, *, postgresql: bool) -> list[str]:
    """The statements by which the documentation lets a role read a schema, and no more; {role} stands for it."""
    text = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    block = re.search(rf"```sql\n-- {'PostgreSQL' if postgresql else 'MySQL'}.*?\n(.*?)```", text, re.DOTALL)
    assert block is not None
    _, *grants = re.sub(r"lakehub_reader(@'[^']*')?", "{role}", block[1]).replace("sales", schema).splitlines()
    return [grant.rstrip(";") for grant in grants]
