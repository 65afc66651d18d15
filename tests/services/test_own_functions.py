"""No function that the owners of a source made runs in a person's query, by whatever way a server would choose it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import uuid4

import pytest
import sqlalchemy as sa

from lakehub.catalog.metadata.tables import SqlTable
from quality.domain.language.values import Failed
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sqlalchemy import SqlAlchemyEngine
from tests.contracts.engine_answers import measure
from tests.services.database_roles import database_roles, reading


class Source(NamedTuple):
    """`owner` runs statements as who made the schema, which is on the role's path, `{schema}` stands for it."""

    url: sa.URL
    schema: str
    owner: Callable[[str], None]

    def answer(self, sql: str) -> object:
        query = measure("query", values=(sql,))
        target = SqlTable(self.url.render_as_string(hide_password=False), f"{self.schema}.orders")
        limits = Limits(timeout=timedelta(seconds=20))
        return SqlAlchemyEngine().measure(Scan(target, (query,)), limits).answers[query]

    def refusal(self, sql: str) -> str:
        failed = self.answer(sql)
        assert isinstance(failed, Failed), failed
        return failed.cause


@pytest.fixture
def postgresql(postgresql_url: str) -> Iterator[Source]:
    """With a superuser's extension citext and a schema that everybody finds."""
    path = "ALTER ROLE {role} SET search_path = {schema}, public"
    yield from _source(
        sa.make_url(postgresql_url).set(drivername="postgresql+psycopg"), (path,), ("nick CITEXT", "'b'")
    )


@pytest.fixture
def mariadb(mariadb_url: str) -> Iterator[Source]:
    grants = ("GRANT EXECUTE ON {schema}.* TO {role}",)
    yield from _source(sa.make_url(mariadb_url).set(drivername="mysql+pymysql"), grants, ("nick VARCHAR(9)", "'b'"))


def _source(url: sa.URL, grants: Sequence[str], column: tuple[str, str]) -> Iterator[Source]:
    schema, is_postgresql = f"own_{uuid4().hex[:8]}", url.get_backend_name() == "postgresql"
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def owner(statement: str) -> None:
        with admin.connect() as connection:
            connection.exec_driver_sql(statement.replace("{schema}", schema))

    owner("CREATE SCHEMA {schema}")
    if is_postgresql:
        owner("CREATE EXTENSION citext SCHEMA {schema}")
    name, value = column
    owner(
        f"CREATE TABLE {{schema}}.orders (id INTEGER, note VARCHAR(20), {name.replace('CITEXT', f'{schema}.citext')})"
    )
    owner(f"INSERT INTO {{schema}}.orders VALUES (1, 'a', 'B'), (2, 'b', {value})")
    try:
        with database_roles(url) as role:
            every = [
                *reading(schema, postgresql=is_postgresql),
                *(grant.replace("{schema}", schema) for grant in grants),
            ]
            yield Source(role(every).set(database=url.database if is_postgresql else schema), schema, owner)
    finally:
        owner("DROP SCHEMA {schema}" + (" CASCADE" if is_postgresql else ""))


ROW_FUNCTION = "CREATE FUNCTION {schema}.evil(x {type}) RETURNS INT LANGUAGE plpgsql AS 'BEGIN RETURN 77; END'"


@pytest.mark.parametrize("kind", ["record", "anyelement", "{schema}.orders", "VARIADIC {schema}.orders[]"])
@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT max(this.evil) FROM this", "the table has no column `evil`"),
        ("SELECT max(t.evil) FROM this AS t", "the table has no column `evil`"),
        ('SELECT max("this"."evil") FROM this', "the table has no column `evil`"),
        ("SELECT max(s.evil) FROM (SELECT * FROM this) AS s", "a function {schema}.evil"),
        ("WITH c AS (SELECT * FROM this) SELECT max(c.evil) FROM c", "a function {schema}.evil"),
        (
            "WITH c AS (SELECT id AS evil FROM this) SELECT max(d.evil) FROM (SELECT evil AS a FROM c) AS d",
            "a function",
        ),
        ("SELECT max(v.evil) FROM (VALUES (1, 2)) AS v(a, b), this", "a function {schema}.evil"),
        ("SELECT max(t.evil) FROM this AS t(evil2, b)", "evil"),
    ],
)
def test_a_name_behind_a_dot_calls_no_function_of_rows(postgresql: Source, kind: str, sql: str, why: str) -> None:
    postgresql.owner(ROW_FUNCTION.replace("{type}", kind))
    assert why.replace("{schema}", postgresql.schema) in postgresql.refusal(sql)


def test_a_column_that_is_called_like_a_function_is_read(postgresql: Source) -> None:
    postgresql.owner(ROW_FUNCTION.replace("evil", "note").replace("{type}", "{schema}.orders"))
    postgresql.owner(ROW_FUNCTION.replace("evil", "n").replace("{type}", "record"))
    for sql in (
        "SELECT count(this.note) FROM this",
        "SELECT count(t.note) FROM this AS t JOIN this AS u ON t.note = u.note",
        "WITH c AS (SELECT * FROM this) SELECT count(c.note) FROM c",
        "WITH c AS (SELECT this.* FROM this) SELECT max(d.n) FROM (SELECT count(c.note) AS n FROM c) AS d",
        "SELECT count(*) FROM this AS x WHERE EXISTS (SELECT 1 FROM (SELECT id AS k FROM this) AS x WHERE x.k > 0)",
        "SELECT count(s.note) FROM (SELECT CAST(note AS VARCHAR) FROM this UNION ALL SELECT 'c') AS s WHERE s.note < 'c'",
    ):
        assert postgresql.answer(sql) == 2, sql


def test_what_is_printed_with_a_dot_calls_no_function_of_rows(postgresql: Source) -> None:
    postgresql.owner(ROW_FUNCTION.replace("{type}", "record"))
    assert "the table has no column `evil`" in postgresql.refusal("SELECT max(STRUCT_EXTRACT(this, 'evil')) FROM this")


@pytest.mark.parametrize(
    ("made", "sql", "name"),
    [
        ("round(x VARCHAR) RETURNS INT", "SELECT max(round(note)) FROM this", "round"),
        ("round(x VARCHAR) RETURNS INT", "SELECT max(ROUND(note)) FROM this", "round"),
        ("length(x INT) RETURNS INT", "SELECT max(length(id)) FROM this", "length"),
        ("total(x INT) RETURNS INT", "SELECT sum(total(id)) FROM this", "total"),
        ("date_trunc(x VARCHAR, y INT) RETURNS INT", "SELECT max(date_trunc('day', id)) FROM this", "date_trunc"),
    ],
)
def test_an_overload_of_a_name_on_the_list_is_not_called(postgresql: Source, made: str, sql: str, name: str) -> None:
    postgresql.owner(f"CREATE FUNCTION {{schema}}.{made} LANGUAGE plpgsql AS 'BEGIN RETURN 77; END'")
    why = postgresql.refusal(sql)
    assert f"the query may call `{name}`, and the database has a function {postgresql.schema}.{name}" in why.lower()
    assert "take its schema off the search_path of that role" in why
    assert postgresql.answer("SELECT count(*) FROM this WHERE id > 0") == 2


@pytest.mark.parametrize(
    ("operator", "sql"),
    [
        ("~~", "SELECT count(*) FROM this WHERE id LIKE 7"),
        ("=", "SELECT count(*) FROM this WHERE id IN (note)"),
        ("=", "SELECT count(NULLIF(id, note)) FROM this"),
        ("=", "SELECT count(*) FROM this WHERE id = note"),
        ("||", "SELECT count(*) FROM this WHERE (id || 7) IS NULL"),
        ("*", "SELECT count(id * note) FROM this"),
    ],
)
def test_an_operator_of_an_owner_is_not_called(postgresql: Source, operator: str, sql: str) -> None:
    right = "VARCHAR" if "note" in sql else "INT"
    postgresql.owner(
        f"CREATE FUNCTION {{schema}}.hidden(x INT, y {right}) RETURNS BOOLEAN LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    )
    postgresql.owner(
        f"CREATE OPERATOR {{schema}}.{operator} (LEFTARG = INT, RIGHTARG = {right}, FUNCTION = {{schema}}.hidden)"
    )
    assert f"an operator {postgresql.schema}.{operator} that was made there" in postgresql.refusal(sql)
    assert postgresql.answer("SELECT count(*) FROM this") == 2


def test_functions_of_extensions_stay(postgresql: Source) -> None:
    """citext brings `max`, `replace`, `=` and `~~`: a superuser put them there."""
    assert postgresql.answer("SELECT count(*) FROM this WHERE nick = 'b' AND nick LIKE 'B'") == 2
    assert postgresql.answer("SELECT max(length(replace(nick, 'B', 'cc'))) FROM this WHERE nick <> 'a'") == 2


def test_a_function_that_joined_an_extension_is_not_called(postgresql: Source) -> None:
    """Its owner may add functions to it."""
    postgresql.owner("CREATE FUNCTION {schema}.round(x VARCHAR) RETURNS INT LANGUAGE plpgsql AS 'BEGIN RETURN 77; END'")
    postgresql.owner("ALTER EXTENSION citext ADD FUNCTION {schema}.round(VARCHAR)")
    postgresql.owner("ALTER FUNCTION {schema}.round(VARCHAR) OWNER TO " + str(postgresql.url.username))
    try:
        assert "round" in postgresql.refusal("SELECT max(round(note)) FROM this")
    finally:
        postgresql.owner("ALTER EXTENSION citext DROP FUNCTION {schema}.round(VARCHAR)")


def test_what_the_role_may_not_run_or_does_not_find_refuses_nothing(postgresql: Source) -> None:
    made = "CREATE FUNCTION {schema}.round(x VARCHAR) RETURNS INT LANGUAGE plpgsql AS 'BEGIN RETURN 77; END'"
    postgresql.owner(made)
    assert "round" in postgresql.refusal("SELECT round(max(id)) FROM this")
    postgresql.owner("REVOKE EXECUTE ON FUNCTION {schema}.round FROM PUBLIC")
    assert postgresql.answer("SELECT round(max(id)) FROM this") == 2
    postgresql.owner("GRANT EXECUTE ON FUNCTION {schema}.round TO PUBLIC")
    postgresql.owner(f"ALTER ROLE {postgresql.url.username} SET search_path = public")
    assert postgresql.answer("SELECT round(max(id)) FROM this") == 2


@pytest.mark.parametrize("name", ["total", "initcap", "Initcap"])
def test_a_stored_function_of_mariadb_is_not_called(mariadb: Source, name: str) -> None:
    mariadb.owner(f"CREATE FUNCTION {{schema}}.{name}(x INT) RETURNS INT DETERMINISTIC RETURN 77")
    why = mariadb.refusal(f"SELECT max({name.lower()}(id)) FROM this")
    assert f"and the database has a function {mariadb.schema}.{name} that was made there" in why
    assert "search_path" not in why
    assert mariadb.answer("SELECT count(*) FROM this WHERE id > 0") == 2


def test_a_stored_function_that_cannot_be_called_refuses_nothing(mariadb: Source) -> None:
    mariadb.owner("CREATE FUNCTION {schema}.round(x INT) RETURNS INT DETERMINISTIC RETURN 77")
    elsewhere = mariadb._replace(url=mariadb.url.set(database=""))
    assert elsewhere.answer("SELECT round(max(id)) FROM this") == 2
    mariadb.owner(f"REVOKE EXECUTE ON {{schema}}.* FROM '{mariadb.url.username}'@'127.0.0.1'")
    assert mariadb.answer("SELECT round(max(id)) FROM this") == 2
