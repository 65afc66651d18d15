"""What an expression is computed from: a row, a group of rows, or the rows of a window."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

_UNPARSED_AGGREGATES = """
bool_and bool_or product fsum kahan_sum favg mad entropy quantile_cont quantile_disc count_star approx_quantile
percentile percentile_approx approx_count_distinct count_if max_by min_by
"""
_AGGREGATES = frozenset(_UNPARSED_AGGREGATES.split())
"""Functions that the parser has no class for."""
_AROUND_AGGREGATES = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def has_aggregate(expression: exp.Expr) -> bool:
    """`sum(x) OVER (...)` is none: it leaves the rows as they are."""
    return any(not _is_of_window(node) for node in expression.find_all(exp.Func) if _is_aggregate(node))


def _is_aggregate(node: exp.Func) -> bool:
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in _AGGREGATES)


def _is_of_window(node: exp.Expr) -> bool:
    while isinstance(node.parent, _AROUND_AGGREGATES) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def has_window(expression: exp.Expr) -> bool:
    return expression.find(exp.Window) is not None


def is_computed_from(expression: exp.Expr, parts: Collection[exp.Expr]) -> bool:
    """Rows that have the same `parts` have the same value of it."""
    rest = expression.transform(lambda node: exp.true() if node in parts else node)
    return rest.find(exp.Column) is None and not has_window(rest) and not has_aggregate(rest)


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """What has to hold together: `a AND b` are two."""
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    elif condition is not None:
        yield condition


def columns_of(alias: str, expressions: Collection[exp.Expr]) -> set[str]:
    """The columns of one place that they use."""
    columns = (column for each in expressions for column in each.find_all(exp.Column))
    return {column.name for column in columns if column.table == alias}
