"""Where an engine may try a pattern for ever, a person's query has none that it could: for every function that takes one."""

from __future__ import annotations

import pytest

from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import check_select
from quality.domain.language.measures import Measure
from quality.domain.user_sql import QUERY_PARAMETERS
from quality.engines.sql.portable_patterns import JAVA, PCRE, POSTGRESQL, RE2, NotPortable, RegexFlavour, write_pattern
from quality.engines.user_sql.checked_patterns import check_patterns
from quality.engines.user_sql.user_queries import checked_statement

BOMB = "a*a*a*a*a*a*b"
USES = (
    "a RLIKE '{0}'",
    "a NOT RLIKE '{0}'",
    "a REGEXP '{0}'",
    "regexp_like(a, '{0}')",
    "regexp_extract(a, '{0}', 0) = ''",
    "regexp_replace(a, '{0}', '') = ''",
    "regexp_count(a, '{0}') > 0",
)


def _check(condition: str, dialect: str) -> None:
    sql = f"SELECT count(*) FROM this WHERE {condition}"
    check_patterns(check_select(sql, dialect, ["this"], QUERY_PARAMETERS), dialect)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("dialect", ["spark", "mysql", "trino", "snowflake"])
def test_a_pattern_is_cheap_or_refused(use: str, dialect: str) -> None:
    if dialect == "spark":
        _check(use.format("N[0-9]+"), dialect)
    # Another dialect may not know the function, or not know it to only compute.
    why = r"in more than a million ways" if dialect == "spark" else r"million ways|only compute|cannot be understood"
    with pytest.raises(BadQuery, match=why):
        _check(use.format(BOMB), dialect)


@pytest.mark.parametrize(
    "condition",
    [
        "a RLIKE a",
        "a RLIKE concat('a*', 'a*')",
        "a RLIKE :partition",
        "a RLIKE (SELECT max(a) FROM this)",
        "a RLIKE CASE WHEN a = '' THEN 'x' ELSE 'y' END",
        "a LIKE a",
        "a LIKE ANY ('x%', 'y%')",
    ],
)
def test_a_pattern_that_is_not_known_before_is_refused(condition: str) -> None:
    with pytest.raises(BadQuery, match=r"is no text in quotes|without ANY"):
        _check(condition, "spark")


def test_like_counts_where_it_is_a_regular_expression() -> None:
    for pattern in ("%a%", "a%b%", "%a%b%", "N___", "100\\%", "%.*%"):
        _check(f"a LIKE '{pattern}'", "spark")
    for pattern in ("%a%a%a%a%b", "%" * 6 + "x"):
        with pytest.raises(BadQuery, match="more than a million ways"):
            _check(f"a LIKE '{pattern}'", "spark")
        _check(f"a LIKE '{pattern}'", "mysql")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_an_engine_that_stops_takes_any(dialect: str) -> None:
    _check(f"a LIKE '%a%a%a%a%b' OR regexp_like(a, '{BOMB}')", dialect)


@pytest.mark.parametrize("flavour", [JAVA, PCRE])
@pytest.mark.parametrize("pattern", [BOMB, "(?i)a*A*a*A*b", "(a|a)*b", "(a|aa)+b", "^.*a.*b.*c.*$"])
def test_the_pattern_of_a_test_is_cheap_or_refused(pattern: str, flavour: RegexFlavour) -> None:
    for once in (RE2, POSTGRESQL):
        assert write_pattern(pattern, once)
    with pytest.raises(NotPortable, match=r"in more than a million ways.*engine=duckdb"):
        write_pattern(pattern, flavour)


@pytest.mark.parametrize("dialect", ["spark", "mysql"])
def test_no_engine_gets_a_query_whose_patterns_were_not_looked_at(dialect: str) -> None:
    query = Measure("query", values=(f"SELECT count(*) FROM this WHERE a RLIKE '{BOMB}'",))
    with pytest.raises(BadQuery, match="in more than a million ways"):
        checked_statement(query, dialect, ["this"])
