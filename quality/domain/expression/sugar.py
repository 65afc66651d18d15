"""Short forms that stand for longer ones; each is a function from the arguments and the scope to a node, one line in SUGAR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from quality.domain.expression.errors import ExpressionError
from quality.domain.expression.kinds import Kind
from quality.domain.expression.nodes import Call, Expression, Literal, Name, Node
from quality.domain.expression.scope import THIS, UPSTREAM, Scope


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


SUGAR: dict[str, Callable[[Call, Scope], Node]] = {
    "duplicates": _duplicates,
    "completeness": _completeness,
    "null_share": _null_share,
    "freshness": _freshness,
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
