"""A checked tree as SQL for an engine. What is printed is parsed once more: an engine runs no text whose tree was not checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from uuid import uuid4

from sqlglot import exp

from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import (
    check_tree,
    cte_names,
    parameter_name,
    parameters_in,
    parameters_used,
    table_names,
)
from lakehub.user_sql.sql_text import UnreadableSql, parse_statements, write_statement

_ROUNDS = 3
"""A text is often printed in a form of the dialect's own first (a cast, a function's usual name), which then stays."""


def render_sql(
    statement: exp.Expr,
    dialect: str,
    parameter: Callable[[str], str],
    escaped: Callable[[str], str] = str,
    note: Callable[[exp.Expr], object] = id,
) -> str:
    """A query, or what WITH defines, in SQL without comments, with parameters in the engine's own form; `escaped` is done to
    all else. `note` is shown the tree that the SQL is read as, with columns in the place of parameters. Raises BadQuery where
    the SQL would not be read as what was checked.
    """
    mark = f"lakehub_{uuid4().hex}_"
    marked = _with_marked_parameters(statement, mark)
    whole = (
        exp.Select(expressions=[exp.Literal.number(1)], with_=exp.With(expressions=[marked]))
        if isinstance(marked, exp.CTE)
        else marked
    )
    text, tree = _stable_text(whole, dialect)
    note(tree.args["with_"].expressions[0] if isinstance(marked, exp.CTE) else tree)
    if isinstance(marked, exp.CTE):
        text = text.removeprefix("WITH ").removesuffix(" SELECT 1")
    return re.sub(rf"{mark}(\w+)", lambda match: parameter(match.group(1)), escaped(text), flags=re.IGNORECASE)


def _with_marked_parameters(statement: exp.Expr, mark: str) -> exp.Expr:
    tree = statement.copy()
    for node in parameters_in(tree):
        node.replace(exp.column(f"{mark}{parameter_name(node)}"))
    return tree


def _stable_text(tree: exp.Expr, dialect: str) -> tuple[str, exp.Query]:
    """A text, and the tree as which it is parsed, which was checked and is printed as this text."""
    reads, defines = table_names(tree), cte_names(tree)
    for _ in range(_ROUNDS):
        text, again = _printed(tree, dialect)
        if again == tree:
            return text, again
        if table_names(again) != reads or cte_names(again) != defines:
            break
        check_tree(again, dialect, reads.difference(defines), parameters_used(tree))
        tree = again
    raise BadQuery(
        f"The query cannot be written in the SQL of {dialect} without a change of what it says: write it more plainly."
    )


def _printed(tree: exp.Expr, dialect: str) -> tuple[str, exp.Query]:
    try:
        text = write_statement(tree, dialect)
        statements = parse_statements(text, dialect)
    except UnreadableSql as bad:
        raise BadQuery(f"The query cannot be written in the SQL of {dialect}: {bad}.") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise BadQuery(f"The query cannot be written in the SQL of {dialect} as one SELECT.")
    return text, statements[0]


def split_ctes(statement: exp.Query) -> tuple[exp.Query, list[exp.Expr], bool]:
    """The query without its WITH, what that defines, and whether it may name itself."""
    tree = statement.copy()
    with_ = tree.args.get("with_")
    tree.set("with_", None)
    return tree, list(with_.expressions) if with_ else [], bool(with_ and with_.recursive)


def join_ctes(body: exp.Expr, ctes: Sequence[exp.Expr], *, recursive: bool) -> exp.Expr:
    """The query with what its WITH defines, as `split_ctes` took it apart."""
    tree = body.copy()
    if ctes:
        tree.set("with_", exp.With(expressions=[cte.copy() for cte in ctes], recursive=recursive))
    return tree


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
