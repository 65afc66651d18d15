"""The look at a person's query, by itself: in whatever SQL it is written, it only reads what it was given."""

from __future__ import annotations

import logging

import pytest

from quality.domain.queries import BadQuery
from quality.engines.statement import checked, divided, renamed, written
from tests.contracts.answers import ESCAPES

DIALECTS = ("duckdb", "postgres", "mysql", "sqlite", "spark")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_does_more_than_read_is_refused(dialect: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "sqlglot")
    assert [sql for sql in ESCAPES if _is_let_through(sql, dialect)] == []


def _is_let_through(sql: str, dialect: str) -> bool:
    try:
        checked(sql, dialect, {"this"})
    except BadQuery:
        return False
    return True


def test_it_is_written_anew_without_what_hides_in_comments() -> None:
    sql = "SELECT count(*) /*! , load_file('x') */ FROM this -- the end"
    assert written(checked(sql, "mysql", {"this"}), "mysql", str) == "SELECT COUNT(*) FROM this"


def test_parameters_are_written_as_the_engine_binds_them() -> None:
    tree = checked("SELECT count(*) FROM this WHERE t >= :start AND a = ':end' AND p = :partition", "duckdb", {"this"})
    text = written(tree, "mysql", lambda name: f":{name}", lambda rest: rest.replace(":", r"\:"))
    assert text == r"SELECT COUNT(*) FROM this WHERE t >= :start AND a = '\:end' AND p = :partition"


def test_tables_are_renamed_and_still_called_as_before() -> None:
    tree = renamed(checked("SELECT count(this.id) FROM this, this AS other", "spark", {"this"}), {"this": "view_1"})
    assert tree.sql("spark") == "SELECT COUNT(this.id) FROM `view_1` AS `this` CROSS JOIN `view_1` AS other"


def test_what_with_defines_can_be_taken_apart() -> None:
    sql = "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 9) SELECT max(x) FROM n"
    rest, defined, recursive = divided(checked(sql, "duckdb", {"this"}))
    assert (rest.sql(), [cte.alias for cte in defined], recursive) == ("SELECT MAX(x) FROM n", ["n"], True)
