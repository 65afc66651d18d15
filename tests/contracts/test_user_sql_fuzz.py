"""Whatever a person writes: what runs reads the tables that the check saw, and is one statement.

`LAKEHUB_FUZZ_EXPRESSIONS=1000000 python -m pytest tests/contracts/test_user_sql_fuzz.py` tries so many texts. The seed is a
fresh one each time and is printed; `LAKEHUB_FUZZ_SEED` repeats it.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from dataclasses import dataclass
from itertools import islice, product
from random import Random

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlglot import exp

from lakehub.user_sql import BadQuery
from lakehub.user_sql.allowed_functions import PARSED_FUNCTIONS, UNPARSED_FUNCTIONS
from lakehub.user_sql.checked_select import ALLOWED_SYNTAX, check_select, cte_names, table_names
from lakehub.user_sql.rendered_sql import render_sql
from quality.domain.user_sql import QUERY_PARAMETERS
from quality.engines.backends.database_dialects import escape_persons_sql
from tests.contracts.user_sql.hostile_texts import DIALECTS, PLAIN, TABLES, function_calls, hostile_text
from tests.contracts.user_sql.readers import DuckDbReader, SqliteReader, tables_by_parser
from tests.fuzz_seed import REPEAT, SEED

TEXTS = int(os.environ.get("LAKEHUB_FUZZ_EXPRESSIONS", "3000"))


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "sqlglot")


def rendered(sql: str, dialect: str) -> tuple[exp.Query, str] | None:
    try:
        tree = check_select(sql, dialect, TABLES, QUERY_PARAMETERS)
        return tree, render_sql(tree, dialect, lambda name: f":{name}")
    except BadQuery:
        return None


@dataclass
class Plain:
    """By dialect, queries that are let through as they are, and what they are made of."""

    queries: dict[str, list[str]]
    parts: set[str]


@pytest.fixture(scope="module")
def plain() -> Plain:
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    plain = Plain({dialect: [] for dialect in DIALECTS}, set())
    for sql, dialect in product(PLAIN, DIALECTS):
        _take(plain, sql, dialect, times=4)
    for name in sorted(PARSED_FUNCTIONS | UNPARSED_FUNCTIONS):
        for dialect in DIALECTS:
            _take_call(plain, name, dialect, most=2)
        for dialect in DIALECTS if name not in plain.parts else ():
            _take_call(plain, name, dialect, most=40)
    return plain


def _take_call(plain: Plain, name: str, dialect: str, most: int) -> None:
    for call in islice(function_calls(name, dialect), most):
        if _take(plain, f"SELECT {call} FROM this", dialect) and (name in plain.parts or name in UNPARSED_FUNCTIONS):
            plain.parts.add(name)  # some dialects have a class for what has none in others
            return


def _take(plain: Plain, sql: str, dialect: str, times: int = 1) -> bool:
    if (rendering := rendered(sql, dialect)) is None:
        return False
    plain.queries[dialect] += [sql] * times
    plain.parts |= {
        node.name.lower() if isinstance(node, exp.Anonymous) else type(node).__name__ for node in rendering[0].walk()
    }
    return True


def test_everything_that_the_lists_allow_is_let_through_somewhere(plain: Plain) -> None:
    """Else the test below would say nothing of it, and the list would be longer than it must be."""
    assert sorted((ALLOWED_SYNTAX | PARSED_FUNCTIONS | UNPARSED_FUNCTIONS) - plain.parts - {"Anonymous"}) == []


@pytest.mark.timeout(300 + TEXTS // 50)
def test_what_runs_reads_the_tables_that_were_checked(plain: Plain) -> None:
    chance = Random(SEED)
    print(REPEAT)
    readers = {"sqlite": SqliteReader(), "duckdb": DuckDbReader()}
    seen: Counter[str] = Counter()
    for _ in range(TEXTS):
        dialect = chance.choice((*DIALECTS, *readers, *readers))
        sql = hostile_text(chance, plain.queries[dialect])
        rendering = rendered(sql, dialect)
        seen["refused" if rendering is None else "accepted"] += 1
        if rendering is None:
            continue
        tree, text = rendering
        checked, own = table_names(tree), set(cte_names(tree))
        context = f"{sql!r} became {text!r} in {dialect}; {REPEAT}"
        assert tables_by_parser(text, dialect) == checked, context
        if (reader := readers.get(dialect)) is not None and (read := reader.tables_of(text)) is not None:
            seen[dialect] += 1
            assert read - own <= checked - own <= set(TABLES), context
        assert checked - own <= set(TABLES), context
        seen["sent"] += is_sent_as_checked(tree, dialect, context)
    print(dict(seen))
    assert seen["accepted"] > TEXTS / 6, (seen, REPEAT)
    assert min(seen["sqlite"], seen["duckdb"]) > TEXTS / 50, (seen, REPEAT)
    assert seen["sent"] > TEXTS / 20, (seen, REPEAT)


DRIVERS = {
    "sqlite": (sqlite.dialect(), lambda name: "?", str),
    "postgres": (postgresql.psycopg.dialect(), lambda name: f"%({name})s", lambda text: text.replace("%", "%%")),
    "mysql": (mysql.pymysql.dialect(), lambda name: "%s", lambda text: text.replace("%", "%%")),
}


def is_sent_as_checked(tree: exp.Query, dialect: str, context: str) -> bool:
    """What SQLAlchemy makes of the text for the driver: colons, percents and backslashes in texts stay what they were."""
    if dialect not in DRIVERS:
        return False
    driver, parameter, escaped = DRIVERS[dialect]
    try:
        given = render_sql(tree, dialect, lambda name: f":{name}", escape_persons_sql)
    except BadQuery as refused:
        assert "%(" in str(refused)  # noqa: PT017
        return False
    sent = str(sa.text(given).compile(dialect=driver))
    wanted = render_sql(tree, dialect, parameter, escaped)
    assert sent.replace("::TIMESTAMP WITHOUT TIME ZONE", "") == wanted, context
    return True
