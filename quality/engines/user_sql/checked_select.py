"""The SQL that a person wrote, read before it runs: one SELECT over the tables that it was given, by functions that only compute.

What is not known to be harmless is refused. An engine runs what is written anew from the tree that was looked at, never the
text itself: what hides in a comment (MySQL runs some of them) is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from uuid import uuid4

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakehub.kernel.suggest import did_you_mean
from quality.domain.user_sql import PARSER_ERRORS, QUERY_PARAMETERS, BadQuery
from quality.engines.user_sql.allowed_functions import PARSED_FUNCTIONS, UNPARSED_FUNCTIONS

THIS = "this"


def check_select(sql: str, dialect: str, tables: Collection[str]) -> exp.Query:
    """The statement as a tree; `tables` are the names that it may read. Raises BadQuery."""
    statement = _single_select(sql, dialect)
    for node in statement.walk():
        if isinstance(node, exp.Func):
            _check_function(node)
        elif type(node).__name__ not in ALLOWED_SYNTAX:
            raise BadQuery(f"The query may only read: one SELECT, without {node.key.upper()}.")
        if isinstance(node, exp.Placeholder | exp.Parameter):
            _check_parameter(node)
    _check_tables(statement, {name.lower() for name in tables})
    return statement


@lru_cache(maxsize=256)
def _parse_statements(sql: str, dialect: str) -> tuple[exp.Expr | None, ...]:
    return tuple(sqlglot.parse(sql, read=dialect))


def _single_select(sql: str, dialect: str) -> exp.Query:
    try:
        statements = [statement for statement in _parse_statements(sql, dialect) if statement is not None]
    except (SqlglotError, *PARSER_ERRORS) as bad:
        problem = "it is nested too deeply" if isinstance(bad, RecursionError) else str(bad).splitlines()[0]
        raise BadQuery(f"The query cannot be understood as {dialect}: {problem}") from None
    if len(statements) != 1:
        raise BadQuery(f"One SELECT is wanted, not {len(statements)} statements.")
    statement = statements[0].copy()
    if not isinstance(statement, exp.Query):
        raise BadQuery(f"One SELECT is wanted, not {statement.key.upper()}.")
    return statement


_ALLOWED_SYNTAX = """
Select Union Intersect Except Subquery With CTE From Join Where Group Having Qualify Order Ordered Limit Offset Fetch
Distinct Cube Rollup GroupingSets Values Tuple Window WindowSpec Filter WithinGroup IgnoreNulls RespectNulls

Table TableAlias Alias Aliases Column Identifier Star Var Dot Bracket Slice Paren Literal National Boolean Null
Placeholder Parameter Interval IntervalSpan DataType DataTypeParam ColumnDef Lambda Kwarg PropertyEQ AtTimeZone
Collate Escape

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
            raise BadQuery(f"The query reads {table.sql()}; it may read `this` and datasets by their names.")
        if table.db or table.catalog:
            raise BadQuery(f"The query reads {table.sql()}; datasets are named without a schema.")
        if table.name.lower() not in visible:
            raise BadQuery(f"The query may not read `{table.name}`.{did_you_mean(table.name, sorted(visible))}")


def _check_parameter(node: exp.Expr) -> None:
    name = node.this if isinstance(node.this, str) else getattr(node.this, "name", "")
    if name not in QUERY_PARAMETERS:
        raise BadQuery(f"The query has no parameter `:{name or '?'}`.{did_you_mean(name, QUERY_PARAMETERS)}")


# Functions


def _check_function(node: exp.Func) -> None:
    if isinstance(node, exp.Anonymous):
        name, is_allowed = node.name.lower(), node.name.lower() in UNPARSED_FUNCTIONS
    else:
        name, is_allowed = node.sql_name().lower(), type(node).__name__ in PARSED_FUNCTIONS
    if not is_allowed:
        raise BadQuery(f"The function {name} is not known to only compute, so a query may not use it.")


# Written anew


def render_sql(
    statement: exp.Expr, dialect: str, parameter: Callable[[str], str], escaped: Callable[[str], str] = str
) -> str:
    """The statement in SQL without comments, with parameters in the engine's own form; `escaped` is done to all else."""
    mark = f"lakehub_{uuid4().hex}_"
    tree = statement.copy()
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = node.this if isinstance(node.this, str) else node.this.name
        node.replace(exp.Identifier(this=f"{mark}{name}"))
    text = escaped(tree.sql(dialect=dialect, comments=False))
    return re.sub(rf"{mark}(\w+)", lambda match: parameter(match.group(1)), text, flags=re.IGNORECASE)


def split_ctes(statement: exp.Query) -> tuple[exp.Query, list[exp.Expr], bool]:
    """The query without its WITH, what that defines, and whether it may name itself."""
    tree = statement.copy()
    with_ = tree.args.get("with_")
    tree.set("with_", None)
    return tree, list(with_.expressions) if with_ else [], bool(with_ and with_.recursive)


def rename_tables(statement: exp.Query, names: dict[str, str]) -> exp.Query:
    """Reads other tables in the place of those named; they are still called as before."""
    tree = statement.copy()
    for table in list(tree.find_all(exp.Table)):
        name = names.get(table.name.lower())
        if name is not None:
            table.set(
                "alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
            )
            table.set("this", exp.to_identifier(name, quoted=True))
    return tree


def parameters_used(statement: exp.Query) -> set[str]:
    """The parameters that it names."""
    placeholders = statement.find_all(exp.Placeholder, exp.Parameter)
    return {node.this if isinstance(node.this, str) else node.this.name for node in placeholders}
