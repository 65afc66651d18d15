"""The look at a person's query, by itself: in whatever SQL it is written, it only reads what it was given."""

from __future__ import annotations

import logging
import re
from contextlib import suppress

import pytest
from sqlglot import exp

from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import check_select, check_tree
from lakehub.user_sql.rendered_sql import rename_tables, render_sql, split_ctes
from quality.domain.user_sql import QUERY_PARAMETERS
from quality.engines.backends.database_dialects import escape_persons_sql
from tests.contracts.engine_answers import ESCAPES
from tests.contracts.user_sql.readers import tables_by_parser

DIALECTS = ("duckdb", "postgres", "mysql", "sqlite", "spark", "trino", "hive", "snowflake", "bigquery")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_does_more_than_read_is_refused(dialect: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "sqlglot")
    assert [sql for sql in ESCAPES if _is_let_through(sql, dialect)] == []


def _is_let_through(sql: str, dialect: str) -> bool:
    try:
        check_select(sql, dialect, {"this"})
    except BadQuery:
        return False
    return True


def test_it_is_written_anew_without_what_hides_in_comments() -> None:
    sql = "SELECT count(*) /*! , load_file('x') */ FROM this -- the end"
    assert render_sql(check_select(sql, "mysql", {"this"}), "mysql", str) == "SELECT COUNT(*) FROM this"


def test_parameters_are_written_as_the_engine_binds_them() -> None:
    tree = check_select(
        "SELECT count(*) FROM this WHERE t >= :start AND a = ':end' AND p = :partition",
        "duckdb",
        {"this"},
        QUERY_PARAMETERS,
    )
    text = render_sql(tree, "mysql", lambda name: f":{name}", lambda rest: rest.replace(":", r"\:"))
    assert text == r"SELECT COUNT(*) FROM this WHERE t >= :start AND a = '\:end' AND p = :partition"


def test_tables_are_renamed_and_still_called_as_before() -> None:
    tree = rename_tables(
        check_select("SELECT count(this.id) FROM this, this AS other", "spark", {"this"}), {"this": "view_1"}
    )
    assert tree.sql("spark") == "SELECT COUNT(this.id) FROM `view_1` AS `this` CROSS JOIN `view_1` AS other"


def test_what_with_defines_can_be_taken_apart() -> None:
    sql = "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 9) SELECT max(x) FROM n"
    rest, defined, recursive = split_ctes(check_select(sql, "duckdb", {"this"}))
    assert (rest.sql(), [cte.alias for cte in defined], recursive) == ("SELECT MAX(x) FROM n", ["n"], True)


HOSTILE = "a), evil((SELECT max(a) FROM people)"


@pytest.mark.parametrize(
    "node",
    [
        exp.Extract(this=exp.Var(this=HOSTILE), expression=exp.column("a")),
        exp.Cast(this=exp.column("a"), to=exp.DataType(this=exp.DType.USERDEFINED, kind=HOSTILE)),
        exp.MakeInterval(year=exp.Kwarg(this=exp.Identifier(this=HOSTILE), expression=exp.column("a"))),
        exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this=HOSTILE)),
        exp.Column(this=exp.Identifier(this=HOSTILE)),
        exp.Alias(this=exp.column("a"), alias=exp.Identifier(this="b FROM people --")),
        exp.Literal(this=HOSTILE, is_string=False),
    ],
    ids=lambda node: type(node).__name__,
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_look_missed_is_not_printed(node: exp.Expr, dialect: str) -> None:
    """Each tree was made by hand and is not looked at before it is printed; in a text, between quotes, it does no harm."""
    tree = exp.select(node.copy()).from_("this")
    with pytest.raises(BadQuery):
        check_tree(tree, "duckdb", ["this"])
    with suppress(BadQuery):
        text = render_sql(tree, dialect, str)
        assert tables_by_parser(text, dialect) == {"this"}
        assert "people" not in re.sub(r"'[^']*'", "", text)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "mysql", "sqlite"])
def test_an_argument_that_is_written_twice_does_not_double_the_text_without_end(dialect: str) -> None:
    node: exp.Expr = exp.column("a")
    for _ in range(23):
        node = exp.SafeDivide(this=exp.Literal.number(1), expression=node)
    with pytest.raises(BadQuery, match="cannot be written"):
        render_sql(exp.select(node).from_("this"), dialect, str)


def test_what_is_printed_in_another_way_is_looked_at_again() -> None:
    """Spark has no array_sum: it is printed as a function that is on no list."""
    tree = check_select("SELECT array_sum(x -> x + 1) FROM this", "spark", ["this"])
    with pytest.raises(BadQuery, match="The function reduce is not known"):
        render_sql(tree, "spark", str)


def test_what_a_dialect_cannot_say_is_refused_and_not_left_out() -> None:
    """SQLite has no names for the columns of a table; they were dropped, and the query said something else."""
    tree = check_select("SELECT count(v.b) FROM (VALUES (1, NULL)) AS v(a, b), this", "sqlite", ["this"])
    with pytest.raises(BadQuery, match="Named columns are not supported"):
        render_sql(tree, "sqlite", str)


@pytest.mark.parametrize("text", ["'100%(' || a", "'%(start)s'", '"%(start)s"'])
def test_what_a_driver_would_take_for_a_parameter_is_refused(text: str) -> None:
    tree = check_select(f"SELECT count({text}) FROM this WHERE a > :start", "sqlite", ["this"], ["start"])
    with pytest.raises(BadQuery, match="which the driver takes for a parameter"):
        render_sql(tree, "sqlite", lambda name: f":{name}", escape_persons_sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (1).pg_sleep FROM this",
        "SELECT (pid).pg_terminate_backend FROM this",
        "SELECT ('search_path').current_setting FROM this",
        "SELECT ((id)).abs FROM this",
        "SELECT id.abs FROM this",
        "SELECT (ARRAY[id])[1].abs FROM this",
        "SELECT CAST(id AS int).abs FROM this",
        "SELECT (SELECT 1).pg_sleep FROM this",
        "SELECT count(*) FROM this WHERE ('x').current_setting = 'y'",
        "SELECT STRUCT_EXTRACT(id, 'abs') FROM this, unnest(ARRAY[1]) AS id",
        "SELECT count(x.pg_sleep) FROM unnest(ARRAY[1]) AS x(a), this",
        "SELECT count(X.pg_sleep) FROM this, unnest(ARRAY[1]) AS x",
        'SELECT count("X".pg_sleep) FROM this, unnest(ARRAY[1]) AS "X"',
        "SELECT count(x.pg_sleep) FROM this, unnest(ARRAY[1]) WITH ORDINALITY AS x",
        "SELECT count(unnest.pg_sleep) FROM this CROSS JOIN unnest(ARRAY[1])",
        "SELECT count(x.pg_sleep) FROM (unnest(ARRAY[1])) AS x, this",
    ],
)
@pytest.mark.parametrize("dialect", ["postgres", "redshift"])
def test_a_dot_behind_a_value_calls_no_function(sql: str, dialect: str) -> None:
    """On PostgreSQL `(value).name` is `name(value)`, of any function there is."""
    with pytest.raises(BadQuery):
        render_sql(check_select(sql, dialect, {"this"}), dialect, str)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(x.a) FROM unnest(ARRAY[1]) AS x(a), this",
        "SELECT sum(x.x) FROM unnest(ARRAY[1]) AS x, this",
        "SELECT count(This.id) FROM this",
        "SELECT count(t.id) FROM this AS t JOIN this AS u ON t.id = u.id",
        "WITH c AS (SELECT id FROM this) SELECT count(c.id) FROM c",
        "SELECT max(s.n) FROM (SELECT count(*) AS n FROM this) AS s",
        "SELECT count(v.b) FROM (VALUES (1, NULL)) AS v(a, b), this",
        "SELECT count(*) FROM this WHERE EXISTS (SELECT 1 FROM this AS u WHERE u.id = this.id)",
    ],
)
def test_a_dot_behind_a_table_names_its_column(sql: str) -> None:
    assert render_sql(check_select(sql, "postgres", {"this"}), "postgres", str)
