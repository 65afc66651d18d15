"""Functions and operators of a source's owners that a person's query would call, asked of the database before it runs.

The list of what only computes is one of names. PostgreSQL chooses among all functions of a name by the types of what they are
given, those of the schemas on its path too; MySQL and MariaDB call a stored function where they have none of that name themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import sqlalchemy as sa
from sqlglot import exp

from lakehub.kernel.suggest import did_you_mean
from lakehub.user_sql import BadQuery
from lakehub.user_sql.sql_text.row_names import RowNames

_CALLED_NAME = re.compile(r"(\w+)[\"`]?\s*\(")
"""In whatever quotes, and in texts too: more than is called, and nothing less. What is allowed is called by a plain word."""

_OPERATORS_OF_WORDS = {
    "LIKE": "!~~",
    "ILIKE": "!~~*",
    "SIMILAR": "!~",
    "IN": "= <>",
    "BETWEEN": "<= >=",
    "NULLIF": "=",
    "CASE": "=",
    "DISTINCT": "=",
    "USING": "=",
    "NATURAL": "=",
}
"""Each holds those that are its parts: `!~~` is for `~~` as well."""
_NO_OPERATOR = re.compile(r"(?<=[(.])\*|(?<=SELECT )\*")
"""The sign for all columns, or all rows."""


def own_function_refusal(connection: sa.Connection, sql: str, row_calls: Collection[str] = ()) -> str:
    """Why the statement is not run: the first function or operator of the database's own that it may call; empty where there is none.

    `row_calls` are names behind a dot that may be functions of rows. Asks PostgreSQL, MySQL and MariaDB; others are not known to
    have such functions under names of the list. Raises SQLAlchemyError.
    """
    names = sorted({form for name in _CALLED_NAME.findall(sql) for form in (name, name.lower())} | set(row_calls))
    if connection.dialect.name in _MYSQL:
        return _first_refusal(connection, _STORED_FUNCTIONS, names, {})
    if connection.dialect.name != "postgresql":
        return ""
    return _first_refusal(connection, _FUNCTIONS, names, {}) or _first_refusal(
        connection, _OPERATORS, None, {"sql": _with_operators(sql)}
    )


def _first_refusal(
    connection: sa.Connection, statement: str, names: Collection[str] | None, values: Mapping[str, object]
) -> str:
    text = sa.text(statement)
    if names is not None:
        text, values = text.bindparams(sa.bindparam("names", expanding=True)), {**values, "names": list(names)}
    row = connection.execute(text, values).first()
    if row is None:
        return ""
    kind, schema, name = row
    return (
        f"the query may call `{name}`, and the database has {kind} {schema}.{name} that was made there: nobody knows what it does. "
        f"Rename it, revoke EXECUTE on it from the role of this connection{_OFF_THE_PATH.get(connection.dialect.name, '')}, or "
        "write the query without it"
    )


_OFF_THE_PATH = {"postgresql": ", take its schema off the search_path of that role"}


def _with_operators(sql: str) -> str:
    """With the operators that words stand for."""
    words = set(re.findall(r"[A-Z]+", sql.upper()))
    return " ".join(
        [_NO_OPERATOR.sub(" ", sql), *(signs for word, signs in _OPERATORS_OF_WORDS.items() if word in words)]
    )


_OF_AN_EXTENSION = """EXISTS (
    SELECT 1 FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_roles AS r ON r.oid = {owner}
    WHERE d.classid = CAST('pg_catalog.{catalog}' AS regclass) AND d.objid = {oid} AND d.deptype = 'e' AND r.rolsuper
)"""
"""Those of extensions, such as `max(citext)`, which belong to a superuser: nobody else can have put them there."""
_FUNCTIONS = f"""
SELECT 'a function', n.nspname, p.proname
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE p.proname IN :names AND n.nspname <> 'pg_catalog' AND pg_catalog.pg_function_is_visible(p.oid)
AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
AND NOT {_OF_AN_EXTENSION.format(owner="p.proowner", catalog="pg_proc", oid="p.oid")}
LIMIT 1
"""  # noqa: S608  # our own text only
_OPERATORS = f"""
SELECT 'an operator', n.nspname, o.oprname
FROM pg_catalog.pg_operator AS o JOIN pg_catalog.pg_namespace AS n ON n.oid = o.oprnamespace
WHERE pg_catalog.strpos(:sql, o.oprname) > 0 AND n.nspname <> 'pg_catalog' AND pg_catalog.pg_operator_is_visible(o.oid)
AND pg_catalog.has_function_privilege(CAST(o.oprcode AS oid), 'EXECUTE')
AND NOT {_OF_AN_EXTENSION.format(owner="o.oprowner", catalog="pg_operator", oid="o.oid")}
LIMIT 1
"""  # noqa: S608  # our own text only

_MYSQL = ("mysql", "mariadb")
_STORED_FUNCTIONS = """
SELECT 'a function', routine_schema, routine_name FROM information_schema.routines
WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION' AND routine_name IN :names
LIMIT 1
"""
"""Those that the account may run; without a database that is used none is called by its name alone."""


# Functions of rows


def possible_row_calls(statement: exp.Expr, columns: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The names behind a dot that are not known to be columns; `columns` by the names of the tables, in small letters.

    Raises BadQuery where the name stands behind a table that has no such column.
    """

    def has_column(table: exp.Table, name: exp.Identifier) -> bool | None:
        known = columns.get(table.name.lower())
        return None if known is None else (name.this if name.quoted else name.this.lower()) in known

    names = RowNames(statement, has_column)
    for column in names.possible_calls():
        sources = names.sources_of(column)
        if sources and all(
            isinstance(table, exp.Table) and has_column(table, column.this) is False for table in sources
        ):
            known = sorted(columns[sources[0].name.lower()])
            raise BadQuery(
                f"The query has `{column.table}.{column.name}`, and the table has no column `{column.name}`, which would call a "
                f"function of that name: name a column.{did_you_mean(column.name, known)}"
            )
        yield column.name if column.this.quoted else column.name.lower()
