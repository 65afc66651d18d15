"""The SQL that a person wrote, read before it runs: one SELECT over the tables that it was given, by functions that only compute.

What is not known to be harmless is refused. An engine runs what is written anew from the tree that was looked at, never the
text itself: what hides in a comment (MySQL runs some of them) is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from sqlglot import exp

from lakehub.kernel.suggest import did_you_mean
from lakehub.user_sql import BadQuery
from lakehub.user_sql.allowed_functions import PARSED_FUNCTIONS, UNPARSED_FUNCTIONS
from lakehub.user_sql.allowed_words import check_words
from lakehub.user_sql.sql_text import UnreadableSql, parse_statements

THIS = "this"


def check_select(sql: str, dialect: str, tables: Collection[str], parameters: Collection[str] = ()) -> exp.Query:
    """The statement as a tree; `tables` are the names that it may read, `parameters` those that it may use. Raises BadQuery."""
    statement = _single_select(sql, dialect)
    check_tree(statement, dialect, tables, parameters)
    return statement


def check_tree(statement: exp.Query, dialect: str, tables: Collection[str], parameters: Collection[str] = ()) -> None:
    """Raises BadQuery where it does more than compute something out of the tables."""
    for node in statement.walk():
        try:
            _check_node(node, parameters)
        except BadQuery as bad:
            raise BadQuery(str(bad), line_of(node)) from None
    _check_tables(statement, {name.lower() for name in tables})
    if dialect in CALLS_BY_DOT:
        _check_dots(statement)


def line_of(node: exp.Expr) -> int:
    """Of the statement in which its first word stands, from 1 on; 0: not known."""
    return next((part.meta["line"] for part in node.walk() if "line" in part.meta), 0)


def _check_node(node: exp.Expr, parameters: Collection[str]) -> None:
    if isinstance(node, exp.Func):
        _check_function(node)
    elif type(node).__name__ not in ALLOWED_SYNTAX:
        raise BadQuery(f"The query may only read: one SELECT, without {node.key.upper()}.")
    if isinstance(node, exp.Placeholder | exp.Parameter):
        _check_parameter(node, parameters)
    _check_place(node)
    check_words(node)


def _check_place(node: exp.Expr) -> None:
    if isinstance(node, exp.In) and node.args.get("field") is not None:
        # SQLite reads the table of that name.
        raise BadQuery("The query has IN before a name: IN takes a list or a query in brackets.")
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        raise BadQuery(
            f"The function {_function_name(node.expression)} is called in a schema: call it by its name alone."
        )


CALLS_BY_DOT = ("postgres", "redshift")
"""Dialects in which `(value).name` is `name(value)`, whatever function that is."""


def _check_dots(statement: exp.Query) -> None:
    """A dot stands behind the name of rows only: `this.name` calls no more than a function of whole rows, of which the database's
    own compute; `own_functions` asks for others. The name of an UNNEST stands for a value, so behind it there is its column."""
    if dot := statement.find(exp.Dot):
        raise BadQuery(
            f"The query has `.{dot.expression.name}` behind a value, which would call a function: name a column."
        )
    values = {_unnest_name(unnest): _unnest_columns(unnest) for unnest in statement.find_all(exp.Unnest)}
    rows = {table.alias_or_name.lower() for table in statement.find_all(exp.Table)} | {
        nested.alias.lower()
        for nested in statement.find_all(exp.Subquery, exp.Values)
        if isinstance(nested, exp.Values) or isinstance(nested.this, exp.Query)
    }
    for column in statement.find_all(exp.Column):
        name = column.table.lower()
        if name and (column.name.lower() not in values[name] if name in values else name not in rows):
            raise BadQuery(
                f"The query has `{column.table}.{column.name}`, and `{column.table}` is no table with that column. An UNNEST says what "
                "its column is called: UNNEST(...) AS x(a)."
            )


def _unnest_name(unnest: exp.Unnest) -> str:
    return (unnest.alias or "unnest").lower()


def _unnest_columns(unnest: exp.Unnest) -> set[str]:
    return {name.lower() for name in unnest.alias_column_names or [_unnest_name(unnest)]}


_parse_statements = lru_cache(maxsize=256)(parse_statements)
"""Trees to copy, not to change."""


def _single_select(sql: str, dialect: str) -> exp.Query:
    try:
        statements = _parse_statements(sql, dialect)
    except UnreadableSql as bad:
        raise BadQuery(f"The query cannot be understood as {dialect}: {bad}.") from None
    if len(statements) != 1:
        raise BadQuery(f"One SELECT is wanted, not {len(statements)} statements.")
    statement = statements[0].copy()
    if not isinstance(statement, exp.Query):
        raise BadQuery(f"One SELECT is wanted, not {statement.key.upper()}.")
    return statement


_ALLOWED_SYNTAX = """
Select Union Intersect Except Subquery With CTE From Join Where Group Having Qualify Order Ordered Limit Offset Fetch
LimitOptions Distinct Cube Rollup GroupingSets Values Tuple Window WindowSpec Filter WithinGroup IgnoreNulls RespectNulls

Table TableAlias Alias Aliases Column Identifier Star Var Dot Bracket Slice Paren Literal National Boolean Null
Placeholder Parameter Interval DataType DataTypeParam ColumnDef Lambda Kwarg PropertyEQ AtTimeZone
Escape

Not Neg EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Like ILike SimilarTo Glob Any All Exists Add Sub Mul
Div Mod IntDiv DPipe BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift
"""
"""The parts of a SELECT, as sqlglot calls them: what stands in no list, such as TRANSFORM ... USING of Spark, which runs
a program, is refused."""
ALLOWED_SYNTAX = frozenset(_ALLOWED_SYNTAX.split())

# Tables


def _check_tables(statement: exp.Query, given: Collection[str]) -> None:
    """A name that a WITH defines is its own table only where SQL lets it be seen: elsewhere it would be one of the database."""
    for nested in statement.find_all(exp.With):
        if nested.parent is not statement:
            raise BadQuery("WITH stands at the start of the query only.")
    defined_names = set(given)
    with_ = statement.args.get("with_")
    for cte in with_.expressions if with_ else ():
        name = cte.alias.lower()
        if name in defined_names:
            raise BadQuery(f"The name `{cte.alias}` is taken: call what WITH defines something else.")
        visible = {*defined_names, name} if with_ is not None and with_.recursive else defined_names
        _check_names(cte.this.find_all(exp.Table), visible)
        defined_names.add(name)
    outside = (table for table in statement.find_all(exp.Table) if table.find_ancestor(exp.CTE) is None)
    _check_names(outside, defined_names)


def _check_names(tables: Iterable[exp.Table], visible: Collection[str]) -> None:
    for table in tables:
        if not isinstance(table.this, exp.Identifier):
            raise BadQuery(
                "The query reads what is no table; it may read `this` and datasets by their names.", line_of(table)
            )
        if table.db or table.catalog:
            raise BadQuery(
                f"The query reads `{table.name}` of a schema; datasets are named without a schema.", line_of(table)
            )
        if table.name.lower() not in visible:
            hint = did_you_mean(table.name, sorted(visible))
            raise BadQuery(f"The query may not read `{table.name}`.{hint}", line_of(table))


def table_names(tree: exp.Expr) -> set[str]:
    """The names after FROM and JOIN, in small letters: those of tables and of what WITH defines."""
    return {table.name.lower() for table in tree.find_all(exp.Table)}


def cte_names(tree: exp.Expr) -> list[str]:
    """What WITH defines, in small letters, in order."""
    return [cte.alias.lower() for cte in tree.find_all(exp.CTE)]


# Parameters


def parameters_in(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.find_all(exp.Placeholder, exp.Parameter))


def parameter_name(node: exp.Expr) -> str:
    return node.this if isinstance(node.this, str) else getattr(node.this, "name", "")


def parameters_used(statement: exp.Expr) -> set[str]:
    """The parameters that it names."""
    return {parameter_name(node) for node in parameters_in(statement)}


def _check_parameter(node: exp.Expr, parameters: Collection[str]) -> None:
    name = parameter_name(node)
    if name not in parameters:
        raise BadQuery(f"The query has no parameter `:{name or '?'}`.{did_you_mean(name, parameters)}")


# Functions


def _function_name(node: exp.Func) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def _check_function(node: exp.Func) -> None:
    name = _function_name(node)
    is_parsed = not isinstance(node, exp.Anonymous)
    if not (type(node).__name__ in PARSED_FUNCTIONS if is_parsed else name in UNPARSED_FUNCTIONS):
        raise BadQuery(f"The function {name} is not known to only compute, so a query may not use it.")
