"""Names and kinds, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.errors import NOWHERE, ExpressionError
from quality.domain.expression.kinds import Kind, KindError
from quality.domain.expression.leaves import LEAVES, BadArguments, Leaf
from quality.domain.expression.measures import Ask
from quality.domain.expression.nodes import Argument, Call, Expression, Literal, Name, Node, post_order
from quality.domain.expression.operators import OPERATORS, Operator
from quality.domain.expression.scope import THIS, Scope

_NAMESAKES = {"min": "minimum", "max": "maximum"}


def check(expression: Expression, scope: Scope | None = None) -> None:
    """Raises ExpressionError unless the assertion is true or false and, where a scope is given, its names exist."""
    kind = kind_of(expression.assertion)
    if kind is not Kind.BOOLEAN:
        raise ExpressionError(
            f"A test says what must hold, as in ... < 5%; this is only a {kind}.", where=expression.assertion.where
        )
    if not any(leaf_calls(expression)):
        raise ExpressionError(
            "The test measures nothing: name a table, as in rows(this) > 0.", where=expression.assertion.where
        )
    if scope is not None:
        for call in leaf_calls(expression):
            _check_names(call, scope)


def leaf_calls(expression: Expression) -> Iterator[Call]:
    """What the test measures, in post-order, each as often as it is written."""
    return (node for node in post_order(expression.assertion) if isinstance(node, Call) and node.function in LEAVES)


def asks_of(call: Call) -> tuple[Ask, ...]:
    """The measures that a leaf needs. Raises ExpressionError for arguments that it cannot use."""
    leaf = LEAVES.get(call.function)
    try:
        return leaf.asks([_argument(arg, leaf) for arg in call.args])
    except BadArguments as bad:
        where = call.where if bad.about is None or bad.about.where == NOWHERE else bad.about.where
        raise ExpressionError(str(bad), where=where) from None


def _argument(arg: Node, leaf: Leaf) -> Argument:
    """`-5` is a value like 5."""
    if not isinstance(arg, Call):
        return arg
    value = arg.args[0] if arg.function == "neg" else arg
    if not isinstance(value, Literal) or not isinstance(value.value, Fraction | timedelta):
        raise ExpressionError(
            f"The name of a table or column, or a value, is wanted: {leaf.signature}.", where=arg.where
        )
    return replace(value, value=-value.value, where=arg.where)


def kind_of(node: Node) -> Kind:
    """Raises ExpressionError at the innermost node that makes no sense."""
    if isinstance(node, Literal):
        return node.kind
    if isinstance(node, Name):
        raise ExpressionError(
            f"`{node.dataset}` is a name, not a value: ask for something of it, as in rows({node.dataset}).",
            where=node.where,
        )
    if node.function in LEAVES:
        asks_of(node)
        return LEAVES.get(node.function).kind
    return _operator_kind(node, OPERATORS[node.function])


def _operator_kind(call: Call, operator: Operator) -> Kind:
    least, most = operator.arity
    namesake = _NAMESAKES.get(call.function)
    if namesake and any(isinstance(arg, Name) for arg in call.args):
        raise ExpressionError(
            f"`{call.function}` compares values; of a column it is {namesake}(table.column).", where=call.where
        )
    if not least <= len(call.args) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise ExpressionError(f"`{call.function}` takes {wanted} arguments, not {len(call.args)}.", where=call.where)
    kinds = [kind_of(arg) for arg in call.args]
    try:
        return operator.kind(kinds, call.args)
    except KindError as error:
        raise ExpressionError(str(error), where=call.where) from None


def _check_names(call: Call, scope: Scope) -> None:
    for ask in asks_of(call):
        _check_table(ask.table, scope)
        if ask.measure.kind != "findings":
            _check_columns(ask.table, ask.measure.columns, call, scope)
        if ask.measure.other is not None:
            _check_table(ask.measure.other, scope)
            _check_columns(ask.measure.other, ask.measure.other_columns, call, scope)


def _check_table(table: Name, scope: Scope) -> None:
    if table.dataset not in scope.tables:
        hint = " It has no upstream." if table.dataset == "upstream" else did_you_mean(table.dataset, scope.tables)
        raise ExpressionError(f"There is no dataset `{table.dataset}`.{hint}", where=table.where)
    if table.data_center and table.data_center not in scope.data_centers:
        hint = did_you_mean(table.data_center, scope.data_centers)
        raise ExpressionError(f"There is no data center `{table.data_center}`.{hint}", where=table.where)


def _check_columns(table: Name, columns: Sequence[str], call: Call, scope: Scope) -> None:
    known = scope.tables[table.dataset]
    for column in columns:
        if known is not None and column not in known:
            shown = "This dataset" if table.dataset == THIS else f"`{table.dataset}`"
            raise ExpressionError(f"{shown} has no column `{column}`.{did_you_mean(column, known)}", where=call.where)
