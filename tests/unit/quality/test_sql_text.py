"""A person's SQL reaches the parser within bounds: what it costs is counted, and known before it is paid."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from random import Random
from types import FrameType

import pytest
from sqlglot import exp
from sqlglot.parser import Parser

from incidents.domain.gate.sql_reads import DIALECTS, UnsupportedSql, parse_query
from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import check_select
from lakehub.user_sql.sql_text import (
    MAX_LENGTH,
    MAX_NESTING,
    MAX_TOKENS,
    UnreadableSql,
    parse_statements,
    write_statement,
)
from quality.domain.user_sql import parsed_query
from tests.fuzz_seed import REPEAT, SEED
from tests.rounds import is_everyday, rounds

SQLGLOT_NAMES = tuple("" if name == "ansi" else name for name in DIALECTS)
BOMBS = int(os.environ.get("LAKEHUB_FUZZ_EXPRESSIONS", "0")) // 20 or rounds(100)
LEAST_STEPS, MOST_STEPS = 5_000, 55_100
"""Of the parser: what is known to double takes more than the one, no text more than the other."""
MOST_CALLS = 500_000
"""Of any function of Python: what is not counted as a step must not grow without one."""

OPENERS = (
    "f(", "date(", "timestamp(", "time(", "interval(", "struct(", "STRUCT<", "ARRAY<", "MAP(", "CAST(", "(", "[", "{'a': ",
    "CASE WHEN ", "1 IN (", "EXISTS(SELECT ", "SELECT * FROM (", "x -> ", "NOT ", "- ", "INTERVAL ", "DATE ", "IF(1, ", "a.", "a[",
    "1::", "decimal(", "varchar(", "TRY_CAST(", "EXTRACT(", "JSON_EXTRACT(", "a JOIN (", "WITH a AS (", "VALUES (", "SUM(1) OVER (",
    "FILTER (", "a BETWEEN ", "LATERAL (", "UNNEST(", "TABLE(", "DISTINCT ", "ROW(", "NULLABLE(", "enum(", "TIMESTAMP '", "a:b.",
)  # fmt: skip
CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">"}


def nested(opener: str, levels: int, closed: bool) -> str:
    closer = "".join(CLOSERS[sign] for sign in reversed(opener) if sign in CLOSERS) + (
        " END" if "CASE" in opener else ""
    )
    return opener * levels + "1" + closer * levels * closed


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often any parser advanced, whichever it was and whoever made it; one that goes on is stopped."""
    count, advance = [0], Parser._advance

    def counted(self: Parser, times: int = 1) -> None:
        count[0] += 1
        if count[0] > MOST_STEPS:
            pytest.fail(f"The parser goes on: {self.sql}; {REPEAT}")  # here: it would not come back
        advance(self, times)

    monkeypatch.setattr(Parser, "_advance", counted)
    return count


def parse(sql: str, dialect: str) -> None:
    with suppress(UnreadableSql):
        parse_statements(sql, dialect)


def test_no_nesting_makes_the_parser_work_without_end(steps: list[int]) -> None:
    """Doubled for each level, 24 levels were 16 million steps."""
    chance = Random(SEED)
    parse("SELECT " + nested("date(", 12, True), "duckdb")
    most = steps[0]
    forms = ("SELECT {}", 'SELECT CAST(1 AS "{}")', "SELECT CAST(1 AS `{}`)", "SELECT /*+ {} */ 1")
    for number in range(BOMBS):
        opener = OPENERS[number % len(OPENERS)]
        text = nested(opener, chance.choice((7, MAX_NESTING, 400)), chance.random() < 0.7)
        sql, dialect = chance.choice(forms).format(text), chance.choice(SQLGLOT_NAMES)
        steps[0] = 0
        parse(sql, dialect)
        most = max(most, steps[0])
    assert most > LEAST_STEPS, REPEAT


def test_the_work_beside_the_steps_grows_with_the_text_only(python_calls: Callable[[str, str], int]) -> None:
    openers = OPENERS[SEED % 4 :: 4] if is_everyday() else OPENERS
    texts = ["SELECT " + nested(opener, MAX_NESTING, closed) for opener in openers for closed in (True, False)]
    texts += [
        f"SELECT JSON_EXTRACT(a, '$.{part * 300}')" for part in ("[?(@.a", "[?(", "[1", "..a", "['a'", "[*]", "(")
    ]
    assert max(python_calls(sql, "duckdb") for sql in texts) > 10_000


@pytest.fixture
def python_calls() -> Callable[[str, str], int]:
    def count(sql: str, dialect: str) -> int:
        calls = [0]

        def on_event(frame: FrameType, event: str, argument: object) -> None:
            calls[0] += event == "call"
            if calls[0] > MOST_CALLS:
                sys.setprofile(None)
                pytest.fail(f"The parser goes on: {sql[:100]}")

        sys.setprofile(on_event)
        try:
            parse(sql, dialect)
        finally:
            sys.setprofile(None)
        return calls[0]

    return count


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT '" + "x" * MAX_LENGTH + "'", f"it has {MAX_LENGTH + 9:,} characters, {MAX_LENGTH:,} at most"),
        ("SELECT " + "1," * MAX_TOKENS, f"it has {2 * MAX_TOKENS + 1:,} words and signs, {MAX_TOKENS:,} at most"),
        (
            "SELECT " + nested("f(", MAX_NESTING + 1, True),
            f"it is nested {MAX_NESTING + 1} levels deep, {MAX_NESTING} at most",
        ),
        ("SELECT " + nested("CASE WHEN ", MAX_NESTING + 1, True), f"it is nested {MAX_NESTING + 1} levels deep"),
        ("SELECT " + nested("date(", 12, True), "it takes too long to read"),
        ("SELECT 1 -- \x00", "it has a NUL character"),
        ("SELECT (", "line 1, column 8"),
    ],
)
def test_what_exceeds_a_bound_is_refused_with_it(sql: str, why: str) -> None:
    with pytest.raises(UnreadableSql) as refused:
        parse_statements(sql, "duckdb")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + nested("f(", MAX_NESTING, True),
        "SELECT " + " + ".join("1" * (MAX_TOKENS // 2)),
        "SELECT " + nested("date(", 6, True),
    ],
)
def test_what_keeps_the_bounds_is_parsed(sql: str) -> None:
    assert len(parse_statements(sql, "duckdb")) == 1


def test_everything_that_reads_a_persons_sql_comes_through_this_door() -> None:
    sql = "SELECT " + nested("date(", 12, True) + " FROM this"
    with pytest.raises(BadQuery, match="takes too long"):
        parsed_query(sql)
    with pytest.raises(BadQuery, match="takes too long"):
        check_select(sql, "duckdb", ["this"])
    with pytest.raises(UnsupportedSql, match="takes too long"):
        parse_query(sql, "duckdb")


def test_the_parser_that_athena_hands_its_queries_to_is_bounded_too(steps: list[int]) -> None:
    with pytest.raises(UnreadableSql, match="takes too long"):
        parse_statements("SELECT " + nested("date(", 20, True), "athena")


def test_a_text_that_gets_too_long_as_it_is_printed_is_refused() -> None:
    with pytest.raises(UnreadableSql, match="becomes longer than 20,000 characters"):
        write_statement(exp.select(exp.Literal.string("x" * MAX_LENGTH)), "duckdb")


def test_hints_are_left_out_and_queries_for_athena_are_read_as_trino_reads_them() -> None:
    (hinted,) = parse_statements("SELECT /*+ BROADCAST(a) */ 1", "spark")
    (created,) = parse_statements('CREATE TABLE x AS SELECT "a" FROM y', "athena")
    assert (hinted.sql(), created.find_all is not None, created.expression.sql()) == (
        "SELECT 1",
        True,
        'SELECT "a" FROM y',
    )
