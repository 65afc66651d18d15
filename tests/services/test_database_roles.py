"""What the role of a connection may do is asked of real servers; queries that people write run with a role that only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
import sqlalchemy as sa
from django.test import Client
from sqlglot import exp

from lakehub.accounts.models import Role
from lakehub.catalog.metadata.roles import DatabaseRole, role_warning
from lakehub.catalog.metadata.tables import SqlTable
from lakehub.catalog.storages import STORAGES
from quality.domain.language.values import Failed
from quality.engines.backends.query_permission import query_refusal
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sqlalchemy import SqlAlchemyEngine
from tests import factories
from tests.contracts.engine_answers import measure
from tests.services.database_roles import database_roles, reading

DRIVERS = {"postgresql": "postgresql+psycopg", "mariadb": "mysql+pymysql"}


class Server(NamedTuple):
    name: str
    url: sa.URL
    schema: str
    role: Callable[[Sequence[str]], sa.URL]

    @property
    def reading(self) -> list[str]:
        return reading(self.schema, postgresql=self.name == "postgresql")


@pytest.fixture(params=list(DRIVERS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from _server(request.param, request)


@pytest.fixture
def postgresql(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from _server("postgresql", request)


@pytest.fixture
def mariadb(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from _server("mariadb", request)


def _server(name: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    url = sa.make_url(request.getfixturevalue(f"{name}_url")).set(drivername=DRIVERS[name])
    schema, engine = f"roles_{uuid4().hex[:8]}", sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
        connection.exec_driver_sql(f"CREATE TABLE {schema}.orders (id INTEGER, note VARCHAR(20))")
        connection.exec_driver_sql(f"INSERT INTO {schema}.orders VALUES (1, 'a'), (2, 'b')")
        connection.exec_driver_sql(f"CREATE TABLE {schema}.victim (id INTEGER)")
    with database_roles(url) as role:
        yield Server(name, url, schema, role)
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=name == "postgresql"))


def _role(url: sa.URL) -> DatabaseRole:
    role = STORAGES.get("sql")(url.render_as_string(hide_password=False)).role()
    assert role is not None
    return role


def _ours(role: DatabaseRole, schema: str) -> list[str]:
    """What it may write in the schema; everybody may create in `public` before PostgreSQL 15."""
    return [write for write in role.writes if schema in write]


def test_a_role_that_only_reads_needs_no_warning(server: Server) -> None:
    role = _role(server.role(server.reading))
    assert (role.powers, _ours(role, server.schema), role.only_reads) == ((), [], True)
    assert role_warning(role) == ""


@pytest.mark.parametrize(
    ("grant", "writes"),
    [
        ("GRANT INSERT ON {schema}.orders TO {role}", ["INSERT on {schema}.orders"]),
        ("GRANT UPDATE (note) ON {schema}.orders TO {role}", ["UPDATE on {schema}.orders"]),
        ("GRANT DELETE ON {schema}.orders TO {role}", ["DELETE on {schema}.orders"]),
    ],
)
def test_a_role_that_may_write_a_table_is_told(server: Server, grant: str, writes: list[str]) -> None:
    role = _role(server.role([*server.reading, grant.replace("{schema}", server.schema)]))
    assert role.powers == ()
    assert _ours(role, server.schema) == [write.format(schema=server.schema) for write in writes]
    assert f"may write ({', '.join(role.writes)}); Lakehub only reads." in role_warning(role)


def test_what_a_role_may_create_is_told(server: Server) -> None:
    postgresql = server.name == "postgresql"
    kind = "SCHEMA " if postgresql else ""
    role = _role(server.role([f"GRANT CREATE ON {kind}{server.schema}{'' if postgresql else '.*'} TO {{role}}"]))
    expected = f"CREATE in schema {server.schema}" if postgresql else f"CREATE on {server.schema}.*"
    assert _ours(role, server.schema) == [expected]


@pytest.mark.parametrize(
    ("grant", "powers"),
    [
        ("ALTER ROLE {role} SUPERUSER", ("superuser",)),
        ("ALTER ROLE {role} REPLICATION", ("replication",)),
        ("ALTER ROLE {role} CREATEROLE", ("CREATEROLE",)),
        ("GRANT pg_read_server_files TO {role}", ("pg_read_server_files",)),
        ("GRANT pg_write_server_files TO {role}", ("pg_write_server_files",)),
        ("GRANT pg_execute_server_program TO {role}", ("pg_execute_server_program",)),
        ("GRANT EXECUTE ON FUNCTION pg_read_file(text) TO {role}", ("EXECUTE on pg_read_file",)),
    ],
)
def test_powers_beyond_tables_are_told_and_no_query_of_a_person_runs_with_them(
    postgresql: Server, grant: str, powers: tuple[str, ...]
) -> None:
    url = postgresql.role([*postgresql.reading, grant])
    assert _role(url).powers == powers
    failed = _count(url, postgresql.schema)
    assert isinstance(failed, Failed)
    assert f"has {', '.join(powers)}, so queries that people write are not run with it" in failed.cause


@pytest.mark.parametrize("inherits", ["INHERIT", "NOINHERIT"])
def test_what_a_role_may_become_counts(postgresql: Server, inherits: str) -> None:
    """Also where it would have to say SET ROLE first."""
    group = postgresql.role([f"GRANT INSERT ON {postgresql.schema}.orders TO {{role}}"]).username
    admins = postgresql.role(["ALTER ROLE {role} SUPERUSER"]).username
    usage = f"GRANT USAGE ON SCHEMA {postgresql.schema} TO {group}"
    writer = _role(postgresql.role([usage, f"ALTER ROLE {{role}} {inherits}", f"GRANT {group} TO {{role}}"]))
    assert (writer.powers, _ours(writer, postgresql.schema)) == ((), [f"INSERT on {postgresql.schema}.orders"])
    assert _role(postgresql.role([f"ALTER ROLE {{role}} {inherits}", f"GRANT {admins} TO {{role}}"])).powers == (
        "superuser",
    )


@pytest.mark.parametrize(
    ("grant", "powers"),
    [
        ("GRANT ALL PRIVILEGES ON *.* TO {role}", ("ALL PRIVILEGES on *.*",)),
        ("GRANT FILE ON *.* TO {role}", ("FILE on *.*",)),
        ("GRANT SUPER ON *.* TO {role}", ("SUPER on *.*",)),
        ("GRANT REPLICATION SLAVE ON *.* TO {role}", ("REPLICATION SLAVE on *.*",)),
        ("GRANT INSERT ON *.* TO {role}", ("INSERT on *.*",)),
        ("GRANT SELECT ON *.* TO {role} WITH GRANT OPTION", ("GRANT OPTION on *.*",)),
        ("GRANT UPDATE ON mysql.* TO {role}", ("UPDATE on `mysql`.*",)),
    ],
)
def test_powers_of_mariadb_are_told_and_no_query_of_a_person_runs_with_them(
    mariadb: Server, grant: str, powers: tuple[str, ...]
) -> None:
    url = mariadb.role([*mariadb.reading, grant])
    assert _role(url).powers == powers
    failed = _count(url, mariadb.schema)
    assert isinstance(failed, Failed)
    assert f"has {', '.join(powers)}, so queries that people write are not run with it" in failed.cause


@pytest.mark.parametrize("default", [True, False])
def test_what_roles_of_mariadb_bring_counts(mariadb: Server, default: bool) -> None:
    """Of a role within a role, also where it would have to say SET ROLE first."""
    names = [f"group_{uuid4().hex[:6]}" for _ in range(2)]
    admin = sa.create_engine(mariadb.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with admin.connect() as connection:
        try:
            for name in names:
                connection.exec_driver_sql(f"CREATE ROLE {name}")
            connection.exec_driver_sql(f"GRANT FILE ON *.* TO {names[1]}")
            connection.exec_driver_sql(f"GRANT DELETE ON {mariadb.schema}.orders TO {names[0]}")
            connection.exec_driver_sql(f"GRANT {names[1]} TO {names[0]}")
            taken = [f"SET DEFAULT ROLE {names[0]} FOR {{role}}"] if default else []
            role = _role(mariadb.role([*mariadb.reading, f"GRANT {names[0]} TO {{role}}", *taken]))
        finally:
            connection.exec_driver_sql(f"DROP ROLE IF EXISTS {', '.join(names)}")
    assert (role.powers, role.writes) == (("FILE on *.*",), (f"DELETE on {mariadb.schema}.orders",))


# What people write


def _count(url: sa.URL, schema: str, sql: str = "SELECT count(*) FROM this") -> object:
    query = measure("query", values=(sql,))
    target = SqlTable(url.render_as_string(hide_password=False), f"{schema}.orders")
    return SqlAlchemyEngine().measure(Scan(target, (query,)), Limits(timeout=timedelta(seconds=20))).answers[query]


def test_a_query_runs_with_a_role_that_reads_and_with_one_that_may_write_a_table(server: Server) -> None:
    assert _count(server.role(server.reading), server.schema) == 2
    assert (
        _count(server.role([*server.reading, f"GRANT INSERT ON {server.schema}.orders TO {{role}}"]), server.schema)
        == 2
    )


def test_a_text_of_any_length_is_not_even_computed(postgresql: Server) -> None:
    """All of it would be in this process' memory before anybody could see that it is no number: here it cannot be computed."""
    url = postgresql.role(postgresql.reading)
    text = "CAST(1 / (id - id) AS VARCHAR)"
    says = {text: "answers a str, which is no number", f"id, {text}": "answers 2 columns"}
    for columns, why in says.items():
        failed = _count(url, postgresql.schema, f"SELECT {columns} FROM this")
        assert isinstance(failed, Failed)
        assert why in failed.cause
    assert _count(url, postgresql.schema, "SELECT sum(id) FROM this WHERE id < 0") is None


@pytest.mark.parametrize(
    "hostile",
    [
        "SELECT 1) AS x; DROP TABLE {schema}.victim; --",
        "SELECT 1) AS x; COMMIT; DROP TABLE {schema}.victim; SELECT 1 FROM (SELECT 1",
    ],
)
def test_a_second_statement_is_refused_by_the_server(
    server: Server, hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever became of the text before, and whatever the role may do."""
    text = hostile.format(schema=server.schema)

    def hostile_sql(tree: exp.Expr, *more: Any) -> str:
        *_, note = more
        note(tree)
        return text

    monkeypatch.setattr("quality.engines.sqlalchemy.render_sql", hostile_sql)
    owner = (
        [f"ALTER TABLE {server.schema}.victim OWNER TO {{role}}"]
        if server.name == "postgresql"
        else [f"GRANT DROP ON {server.schema}.* TO {{role}}"]
    )
    failed = _count(server.role([*server.reading, *owner]), server.schema)
    assert isinstance(failed, Failed)
    refusals = {"postgresql": "cannot insert multiple commands", "mariadb": "You have an error in your SQL syntax"}
    assert refusals[server.name] in failed.cause
    with sa.create_engine(server.url, poolclass=sa.NullPool).connect() as connection:
        assert sa.inspect(connection).has_table("victim", schema=server.schema)


def test_a_driver_that_may_send_several_statements_runs_no_query_of_a_person(mariadb: Server) -> None:
    """No URL brings it about; whatever opens the connection is asked all the same."""
    url = mariadb.role(mariadb.reading)
    with pytest.raises(CannotRead, match="The option `client_flag` is not accepted"):
        _count(url.update_query_dict({"client_flag": str(1 << 16)}), mariadb.schema)
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args={"client_flag": 1 << 16})
    with engine.connect() as connection:
        refusal = query_refusal(connection)
    assert "may send several statements at once; write mysql+pymysql:// in its URL" in refusal


def test_a_server_that_reads_backslashes_in_texts_runs_no_query_of_a_person(postgresql: Server) -> None:
    url = postgresql.role([*postgresql.reading, "ALTER ROLE {role} SET standard_conforming_strings = off"])
    failed = _count(url, postgresql.schema)
    assert isinstance(failed, Failed)
    assert "set standard_conforming_strings = on for the role" in failed.cause


# Where people see it


@pytest.mark.django_db
def test_the_api_and_the_page_warn_of_a_role_that_may_write(server: Server) -> None:
    person = factories.user("ada")
    factories.member(person, factories.team(), Role.ADMIN)
    browser = Client()
    browser.force_login(person)
    writer, reader = (
        server.role([*server.reading, *more]).set(database=server.url.database or server.schema)
        for more in ([f"GRANT INSERT ON {server.schema}.orders TO {{role}}"], [])
    )
    given = {"name": "shop", "plugin": "sql", "team": "flight-ops", "url": writer.render_as_string(hide_password=False)}
    tested = browser.post("/api/v1/connections/test", given | {"name": None}, content_type="application/json")
    added = browser.post("/api/v1/connections", given, content_type="application/json")
    assert added.status_code == 201, added.content
    warning = f"may write (INSERT on {server.schema}.orders); Lakehub only reads."
    assert f"INSERT on {server.schema}.orders" in added.json()["role"]["writes"]
    for text in (tested.json()["role_warning"], added.json()["role_warning"]):
        assert warning in text
    assert warning in browser.get("/connections/shop").content.decode()
    url = {"url": reader.render_as_string(hide_password=False)}
    changed = browser.patch("/api/v1/connections/shop", url, content_type="application/json").json()
    assert (changed["role"]["writes"], changed["role"]["powers"], changed["role_warning"]) == ([], [], "")
    assert "may write" not in browser.get("/connections/shop").content.decode()
