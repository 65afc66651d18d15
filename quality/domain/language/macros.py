"""Short forms that stand for longer ones; each is a function from the arguments and the scope to a node, one line in MACROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.lookback import parse_lookback, shift_back
from quality.domain.language.scope import THIS, UPSTREAM, Scope
from quality.domain.language.tree.errors import ExpressionError
from quality.domain.language.tree.literals import format_duration, format_literal
from quality.domain.language.tree.nodes import Call, Expression, Literal, Name, Node
from quality.domain.value_types import ValueType

MAX_WEEKS = 52


def _duplicates(call: Call, scope: Scope) -> Node:
    """duplicates(table, key, ...): the share of rows that repeat the key of another; without columns, of `this`, its primary key."""
    table, columns = _table_and_key(call, scope)
    return Call(
        "div", (Call("repeated", (table, *columns), call.where), Call("rows", (table,), call.where)), call.where
    )


def _table_and_key(call: Call, scope: Scope) -> tuple[Node, Sequence[Node]]:
    """What is named, and else `this` and its primary key."""
    table, *keys = call.args or (Name(THIS, where=call.where),)
    if not keys and not (isinstance(table, Name) and table.dataset == THIS and scope.primary_key):
        raise ExpressionError(
            f"No primary key is known here: name the columns, as in {call.function}(this, origin, day).",
            where=call.where,
        )
    return table, keys or [Name(column, where=call.where) for column in scope.primary_key]


def _across_partitions(call: Call, scope: Scope) -> Node:
    """across_partitions(this): by the primary key."""
    table, columns = _table_and_key(call, scope)
    return replace(call, args=(table, *columns))


def _completeness(call: Call, scope: Scope) -> Node:
    """completeness(table): its rows as a share of the rows upstream."""
    table = call.args[0] if call.args else Name(THIS, where=call.where)
    return Call(
        "div",
        (Call("rows", (table,), call.where), Call("rows", (Name(UPSTREAM, where=call.where),), call.where)),
        call.where,
    )


def _null_share(call: Call, scope: Scope) -> Node:
    """null_share(table.column): the share of rows without a value."""
    if len(call.args) != 1 or not isinstance(call.args[0], Name) or not call.args[0].column:
        raise ExpressionError("One column is wanted, as in null_share(this.tailnum).", where=call.where)
    column = call.args[0]
    return Call("div", (Call("nulls", (column,), call.where), Call("rows", (column.table,), call.where)), call.where)


def _freshness(call: Call, scope: Scope) -> Node:
    """freshness(this): by completeness where there is an upstream, else by event time, else by commit time."""
    if len(call.args) != 1 or not isinstance(table := call.args[0], Name) or table.column or table.dataset != THIS:
        return call
    if scope.has_upstream:
        return replace(call, args=(table, Name(UPSTREAM, where=table.where)))
    if scope.event_time:
        return replace(call, args=(replace(table, column=scope.event_time),))
    return call


def _before(call: Call, scope: Scope) -> Node:
    """before(x, 7d): what x was in the partition 7 days earlier."""
    if len(call.args) != 2 or not isinstance(span := call.args[1], Literal) or not isinstance(span.value, timedelta):
        raise ExpressionError("A value and how long before is wanted, as in before(rows(this), 7d).", where=call.where)
    return shift_back(call.args[0], parse_lookback(format_duration(span.value), span.where))


def _same_weekday(call: Call, scope: Scope) -> Node:
    """same_weekday(x, 4): the average of x on the last 4 days of the same name."""
    count = _weeks(call)
    if count is None:
        raise ExpressionError(
            f"A value and a number of weeks, 1 to {MAX_WEEKS}, is wanted, as in same_weekday(rows(this), 4).",
            where=call.where,
        )
    weeks = [timedelta(weeks=number) for number in range(1, count + 1)]
    return Call("average", tuple(shift_back(call.args[0], back) for back in weeks), call.where)


def _metric(call: Call, scope: Scope) -> Node:
    """metric(name[, 7d]): the value of a business metric, now or so long before."""
    name, *rest = call.args or (call,)
    if len(rest) > 1 or not isinstance(name, Name | Literal) or not isinstance(_metric_name(name), str):
        raise ExpressionError(
            "The name of a metric is wanted, as in metric(revenue) or metric(revenue, 7d).", where=call.where
        )
    if _metric_name(name) not in scope.metrics:
        hint = did_you_mean(str(_metric_name(name)), scope.metrics) or " None is registered for this dataset."
        raise ExpressionError(f"There is no metric `{_metric_name(name)}`.{hint}", where=name.where)
    sql = Literal(scope.metrics[str(_metric_name(name))], ValueType.TEXT, name.where)
    query = Call("query", (Name(THIS, where=name.where), sql), call.where)
    return _before(replace(call, args=(query, *rest)), scope) if rest else query


def _metric_name(name: Name | Literal) -> object:
    return name.dataset if isinstance(name, Name) else name.value


def _matching(call: Call, scope: Scope) -> Node:
    """matching(this, this@dc2): of all keys, by the primary key."""
    return _with_key(call, Literal(Fraction(1), ValueType.RATIO), scope)


def _sampled(call: Call, scope: Scope) -> Node:
    """sampled(this, upstream): 1,000 rows, by the primary key."""
    return _with_key(call, Literal(Fraction(1_000), ValueType.NUMBER), scope)


def _difference(call: Call, scope: Scope) -> Node:
    """difference(this, this@dc2): of all columns, by the primary key."""
    return _with_key(call, Literal("", ValueType.TEXT), scope)


def _with_key(call: Call, size: Literal, scope: Scope) -> Node:
    """All that the leaf takes: two tables, how much of them, and the columns of the key."""
    tables, rest = call.args[:2], call.args[2:] or (replace(size, where=call.where),)
    if len(rest) > 1 or len(tables) < 2:
        return replace(call, args=(*tables, *rest))
    if not scope.primary_key:
        raise ExpressionError(
            f"No primary key is known here: {call.function} wants all its arguments and the columns of a key, as in"
            f" {call.function}(this, upstream, {format_literal(size.value, size.value_type)}, origin, day).",
            where=call.where,
        )
    return replace(call, args=(*tables, *rest, *(Name(column, where=call.where) for column in scope.primary_key)))


MACROS: dict[str, Callable[[Call, Scope], Node]] = {
    "duplicates": _duplicates,
    "across_partitions": _across_partitions,
    "completeness": _completeness,
    "null_share": _null_share,
    "freshness": _freshness,
    "before": _before,
    "same_weekday": _same_weekday,
    "metric": _metric,
    "matching": _matching,
    "sampled": _sampled,
    "difference": _difference,
}


MAX_NODES = 5_000
"""Of an expression with its short forms written out."""


def expand_macros(expression: Expression, scope: Scope) -> Expression:
    """The same test in operators and leaves only. Raises ExpressionError where the scope lacks what a short form needs, or
    where it would have more than MAX_NODES nodes: they are counted before they are made.
    """
    if expanded_size(expression.assertion) > MAX_NODES:
        raise ExpressionError(
            f"The expression is too large with its short forms written out: {MAX_NODES:,} parts are the most. "
            "Use fewer weeks, or fewer short forms inside each other.",
            where=expression.assertion.where,
        )
    return replace(expression, assertion=_expand(expression.assertion, scope))


def expanded_size(node: Node) -> int:
    """How many nodes it has at most with its short forms written out; those of the key are not counted."""
    if not isinstance(node, Call):
        return 1
    inside = sum(map(expanded_size, node.args))
    if node.function == "same_weekday":
        inside *= _weeks(node) or 1
    return inside + (_OWN_NODES if node.function in MACROS else 1)


_OWN_NODES = 8
"""What a short form adds of its own, at most."""


def _weeks(call: Call) -> int | None:
    """None: what is given is no number of weeks."""
    count = call.args[1].value if len(call.args) == 2 and isinstance(call.args[1], Literal) else None
    return int(count) if isinstance(count, Fraction) and count in range(1, MAX_WEEKS + 1) else None


def _expand(node: Node, scope: Scope) -> Node:
    if not isinstance(node, Call):
        return node
    call = replace(node, args=tuple(_expand(arg, scope) for arg in node.args))
    return MACROS[call.function](call, scope) if call.function in MACROS else call
