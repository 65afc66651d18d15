"""Short forms that stand for longer ones; each is a function from the arguments and the scope to a node, one line in SUGAR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.amounts import duration_text, literal_text
from quality.domain.expression.errors import ExpressionError
from quality.domain.expression.kinds import Kind
from quality.domain.expression.nodes import Call, Expression, Literal, Name, Node
from quality.domain.expression.scope import THIS, UPSTREAM, Scope
from quality.domain.expression.shifts import look_back, shifted_back

MOST_WEEKS = 52


def _duplicates(call: Call, scope: Scope) -> Node:
    """duplicates(table, key, ...): the share of rows whose key another row has; without columns, of `this`, its primary key."""
    table, *keys = call.args or (Name(THIS, where=call.where),)
    if not keys and not (isinstance(table, Name) and table.dataset == THIS and scope.primary_key):
        raise ExpressionError(
            "No primary key is known here: name the columns, as in duplicates(this, origin, day).", where=call.where
        )
    columns = keys or [Name(column, where=call.where) for column in scope.primary_key]
    share = Call(
        "div", (Call("distinct", (table, *columns), call.where), Call("rows", (table,), call.where)), call.where
    )
    return Call("sub", (Literal(Fraction(1), Kind.NUMBER), share), call.where)


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
    return shifted_back(call.args[0], look_back(duration_text(span.value), span.where))


def _same_weekday(call: Call, scope: Scope) -> Node:
    """same_weekday(x, 4): the average of x on the last 4 days of the same name."""
    count = call.args[1].value if len(call.args) == 2 and isinstance(call.args[1], Literal) else None
    if not isinstance(count, Fraction) or count not in range(1, MOST_WEEKS + 1):
        raise ExpressionError(
            f"A value and a number of weeks, 1 to {MOST_WEEKS}, is wanted, as in same_weekday(rows(this), 4).",
            where=call.where,
        )
    weeks = [timedelta(weeks=number) for number in range(1, int(count) + 1)]
    return Call("average", tuple(shifted_back(call.args[0], back) for back in weeks), call.where)


def _metric(call: Call, scope: Scope) -> Node:
    """metric(name[, 7d]): the value of a business metric, now or so long before."""
    name, *rest = call.args or (call,)
    if len(rest) > 1 or not isinstance(name, Name | Literal) or not isinstance(_said(name), str):
        raise ExpressionError(
            "The name of a metric is wanted, as in metric(revenue) or metric(revenue, 7d).", where=call.where
        )
    if _said(name) not in scope.metrics:
        hint = did_you_mean(str(_said(name)), scope.metrics) or " None is registered for this dataset."
        raise ExpressionError(f"There is no metric `{_said(name)}`.{hint}", where=name.where)
    sql = Literal(scope.metrics[str(_said(name))], Kind.TEXT, name.where)
    query = Call("query", (Name(THIS, where=name.where), sql), call.where)
    return _before(replace(call, args=(query, *rest)), scope) if rest else query


def _said(name: Name | Literal) -> object:
    return name.dataset if isinstance(name, Name) else name.value


def _matching(call: Call, scope: Scope) -> Node:
    """matching(this, this@dc2): of all keys, by the primary key."""
    return _with_key(call, Literal(Fraction(1), Kind.RATIO), scope)


def _sampled(call: Call, scope: Scope) -> Node:
    """sampled(this, upstream): 1,000 rows, by the primary key."""
    return _with_key(call, Literal(Fraction(1_000), Kind.NUMBER), scope)


def _with_key(call: Call, size: Literal, scope: Scope) -> Node:
    """All that the leaf takes: two tables, how much of them, and the columns of the key."""
    tables, rest = call.args[:2], call.args[2:] or (replace(size, where=call.where),)
    if len(rest) > 1 or len(tables) < 2:
        return replace(call, args=(*tables, *rest))
    if not scope.primary_key:
        raise ExpressionError(
            f"No primary key is known here: {call.function} wants its size and columns, as in"
            f" {call.function}(this, upstream, {literal_text(size.value, size.kind)}, origin, day).",
            where=call.where,
        )
    return replace(call, args=(*tables, *rest, *(Name(column, where=call.where) for column in scope.primary_key)))


SUGAR: dict[str, Callable[[Call, Scope], Node]] = {
    "duplicates": _duplicates,
    "completeness": _completeness,
    "null_share": _null_share,
    "freshness": _freshness,
    "before": _before,
    "same_weekday": _same_weekday,
    "metric": _metric,
    "matching": _matching,
    "sampled": _sampled,
}


def without_sugar(expression: Expression, scope: Scope) -> Expression:
    """The same test in operators and leaves only. Raises ExpressionError where the scope lacks what a short form needs."""
    return replace(expression, assertion=_plain(expression.assertion, scope))


def _plain(node: Node, scope: Scope) -> Node:
    if not isinstance(node, Call):
        return node
    call = replace(node, args=_all(node.args, scope))
    return SUGAR[call.function](call, scope) if call.function in SUGAR else call


def _all(nodes: Sequence[Node], scope: Scope) -> tuple[Node, ...]:
    return tuple(_plain(node, scope) for node in nodes)
