"""The look at a person's query, by itself: in whatever SQL it is written, it only reads what it was given."""

from __future__ import annotations

import logging

import pytest

from quality.domain.user_sql import BadQuery
from quality.engines.user_sql.checked_select import check_select, rename_tables, render_sql, split_ctes
from tests.contracts.engine_answers import ESCAPES

DIALECTS = ("duckdb", "postgres", "mysql", "sqlite", "spark")


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
        "SELECT count(*) FROM this WHERE t >= :start AND a = ':end' AND p = :partition", "duckdb", {"this"}
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
