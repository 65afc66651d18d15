"""What a query that a person wrote reads: one SELECT over `this` and other datasets, with the parameters of the partition.

Only looked at here, never changed. The engines run it, each in its own dialect and behind its own bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lakehub.kernel.suggest import did_you_mean
from lakehub.user_sql import BadQuery
from lakehub.user_sql.sql_text import UnreadableSql, parse_statements

if TYPE_CHECKING:
    from sqlglot import exp

QUERY_PARAMETERS = ("start", "end", "partition")
"""The parameters that a query may use: the tested partition as two times and as its name."""
_DIALECTS = ("duckdb", "spark", "mysql")
"""The first that understands the text; they differ in how names are quoted."""


@dataclass(frozen=True)
class UserQuery:
    """`tables` are the names that it reads, `this` among them; `parameters` those that it uses.

    `repeatable`: of the same data it gives the same answer, whenever it is asked; it does not look at the clock.
    """

    tables: tuple[str, ...]
    parameters: tuple[str, ...]
    repeatable: bool = False


@lru_cache(maxsize=1024)
def parsed_query(sql: str) -> UserQuery:
    """Raises BadQuery."""
    from sqlglot import exp

    select = _single_select(sql)
    cte_names = {cte.alias_or_name.lower() for cte in select.find_all(exp.CTE)}
    names = [_table_name(table) for table in select.find_all(exp.Table)]
    tables = dict.fromkeys(name for name in names if name.lower() not in cte_names)
    if not tables:
        raise BadQuery("The query reads no table: name `this`, as in SELECT count(*) FROM this.")
    return UserQuery(tuple(tables), _parameters(select), _is_repeatable(select))


_MOVING_TIMES = frozenset({"now", "today", "yesterday", "tomorrow"})
"""Texts that some databases take for a time that moves."""


def _is_repeatable(select: exp.Query) -> bool:
    """By a list of what is known to stay: a function that the parser has no class for may be anything."""
    from sqlglot import exp

    moving = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime, exp.Rand, exp.Anonymous)
    literal_texts = {str(literal.this).strip().lower() for literal in select.find_all(exp.Literal) if literal.is_string}
    return select.find(*moving) is None and literal_texts.isdisjoint(_MOVING_TIMES)


def _single_select(sql: str) -> exp.Query:
    from sqlglot import exp

    statements = _parse_statements(sql)
    if len(statements) != 1:
        raise BadQuery(f"One SELECT is wanted, not {len(statements)} statements.")
    (statement,) = statements
    if not isinstance(statement, exp.Query):
        raise BadQuery(f"One SELECT is wanted, not {statement.key.upper()}.")
    if writes := statement.find(exp.Into, exp.Lock, exp.DML, exp.DDL):
        raise BadQuery(f"The query may only read: one SELECT, without {writes.key.upper()}.")
    return statement


def _parse_statements(sql: str) -> tuple[exp.Expr, ...]:
    first: UnreadableSql | None = None
    for dialect in _DIALECTS:
        try:
            return parse_statements(sql, dialect)
        except UnreadableSql as problem:
            first = first or problem
    raise BadQuery(f"The query cannot be understood: {first}.")


def _table_name(table: exp.Table) -> str:
    from sqlglot import exp

    if not isinstance(table.this, exp.Identifier):
        raise BadQuery(f"The query reads {table.sql()}; it may read `this` and datasets by their names.")
    if table.db:
        raise BadQuery(f"The query reads {table.sql()}; datasets are named without a schema.")
    return table.name


def _parameters(select: exp.Query) -> tuple[str, ...]:
    from sqlglot import exp

    used = dict.fromkeys(
        str(placeholder.this or "?") for placeholder in select.find_all(exp.Placeholder, exp.Parameter)
    )
    for name in used:
        if name not in QUERY_PARAMETERS:
            raise BadQuery(f"The query has no parameter `:{name}`.{did_you_mean(name, QUERY_PARAMETERS)}")
    return tuple(used)
