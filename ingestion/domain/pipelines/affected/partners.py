"""Conditions that ask whether there is a partner elsewhere: `x IN (SELECT ...)`, EXISTS.

Rows that change there reach the rows that they are a partner of, and no others, as if they were joined; whether these are let in or kept out for it makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from ingestion.domain.pipelines.affected.computed import conjuncts
from ingestion.domain.pipelines.affected.names import Names
from ingestion.domain.pipelines.affected.not_followed import NotFollowed, shown
from ingestion.domain.pipelines.affected.shapes import Query, column_of


def conditions_on_partners(condition: exp.Expr) -> Iterator[exp.In | exp.Exists]:
    """IN not below NOT: there a null among the others keeps every row out."""
    if isinstance(condition, exp.In | exp.Exists):
        if isinstance(condition.args.get("query") or condition.this, exp.Query):
            yield condition
    elif isinstance(condition, exp.Not) and isinstance(condition.this.unnest(), exp.Exists):
        yield from conditions_on_partners(condition.this.unnest())
    elif isinstance(condition, exp.Paren | exp.And | exp.Or):
        for part in condition.iter_expressions():
            yield from conditions_on_partners(part)


def is_member(node: exp.In, query: Query, alias: str) -> exp.Expr:
    """That a row of `query`, by `alias`, has the values before IN."""
    values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    names = query.columns or ()
    if len(names) != len(values) or not all(names) or len({*names}) < len(names):
        raise NotFollowed(
            f"It has `{shown(node)}`: write the columns out in the SELECT of IN, each with a name of its own."
        )
    pairs = zip(values, names, strict=True)
    return exp.and_(*(exp.EQ(this=value.copy(), expression=column_of(alias, name)) for value, name in pairs))


def select_of_exists(node: exp.Exists) -> exp.Select:
    tree = node.this.unnest()
    if not isinstance(tree, exp.Select) or tree.args.get("qualify") is not None:
        raise NotFollowed(f"It has `{shown(node)}`: write one SELECT, without a window, in EXISTS.")
    return tree


def without_outer_columns(
    tree: exp.Select, names: Names, outer: Names, alias: str
) -> tuple[exp.Select, exp.Expr | None]:
    """The rows that EXISTS looks at, with the columns that it compares with the query around it, and these comparisons. `names`: of what `tree` reads.
    Its groups do not matter: one is there as long as a row of it is."""
    where = tree.args.get("where")
    conditions = [*conjuncts(where.this)] if where is not None else []
    compared = dict[exp.Expr, str]()

    def is_outer(column: exp.Column) -> bool:
        first = column.parts[0].name
        is_table = outer.by_alias(first) is not None and len(column.parts) > 1
        return names.by_alias(first) is None and (is_table or not names.places_with(first))

    def outside(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or is_outer(node):
            return node
        return column_of(alias, compared.setdefault(node, f"lakehub_compared_{len(compared)}"))

    comparisons = [each for each in conditions if any(map(is_outer, each.find_all(exp.Column)))]
    on = [each.transform(outside) for each in comparisons]
    rows = exp.Select(
        expressions=[exp.alias_(column.copy(), name) for column, name in compared.items()]
        or [exp.alias_(exp.true(), "lakehub_row")],
        from_=tree.args["from_"].copy(),
        joins=[join.copy() for join in tree.args.get("joins") or ()],
    )
    for condition in conditions:
        if condition not in comparisons:
            rows = rows.where(condition.copy())
    return rows, exp.and_(*on) if on else None
