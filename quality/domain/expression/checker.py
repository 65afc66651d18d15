"""Names and kinds, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from lakehub.kernel.calendar import Grain
from quality.domain.expression.errors import NOWHERE, ExpressionError
from quality.domain.expression.kinds import Kind, KindError
from quality.domain.expression.leaves import LEAVES, BadArguments, Leaf
from quality.domain.expression.measures import Ask
from quality.domain.expression.naming import check_names, check_parameters
from quality.domain.expression.nodes import Argument, Call, Expression, Literal, Name, Node, post_order
from quality.domain.expression.operators import OPERATORS, Operator
from quality.domain.expression.scope import Scope
from quality.domain.expression.series import SERIES

_NAMESAKES = {"min": "minimum", "max": "maximum", "average": "mean"}


def check(expression: Expression, scope: Scope | None = None) -> None:
    """Raises ExpressionError unless the assertion is true or false and, where a scope is given, its names exist."""
    kind = kind_of(expression.assertion)
    if kind is not Kind.BOOLEAN:
        raise ExpressionError(
            f"A test says what must hold, as in ... < 5%; this is only a {kind}.", where=expression.assertion.where
        )
    calls = list(leaf_calls(expression))
    if not calls:
        raise ExpressionError(
            "The test measures nothing: name a table, as in rows(this) > 0.", where=expression.assertion.where
        )
    asked = [(call, ask) for call in calls for ask in asks_of(call)]
    check_parameters(expression, asked, scope)
    if scope is not None:
        check_names(asked, scope)


def leaf_calls(expression: Expression) -> Iterator[Call]:
    """What the test measures, in post-order, each as often as it is written."""
    return (node for node in post_order(expression.assertion) if isinstance(node, Call) and node.function in LEAVES)


def series_calls(expression: Expression) -> Iterator[Call]:
    """What the test makes of more than one partition."""
    return (node for node in post_order(expression.assertion) if isinstance(node, Call) and node.function in SERIES)


def asks_of(call: Call) -> tuple[Ask, ...]:
    """The measures that a leaf needs. Raises ExpressionError for arguments that it cannot use."""
    leaf = LEAVES.get(call.function)
    try:
        return leaf.asks([_argument(arg, leaf) for arg in call.args])
    except BadArguments as bad:
        raise _placed(bad, call) from None


def shifts_of(call: Call) -> tuple[timedelta, ...]:
    """How far back a series measures its first argument. Raises ExpressionError."""
    kind, given = _series_arguments(call)
    try:
        return SERIES.get(call.function).shifts(kind, given)
    except BadArguments as bad:
        raise _placed(bad, call) from None


def least_of(call: Call, grain: Grain) -> timedelta:
    """How much past a series must have for an answer. Raises ExpressionError."""
    kind, given = _series_arguments(call)
    try:
        return SERIES.get(call.function).least(kind, given, grain)
    except BadArguments as bad:
        raise _placed(bad, call) from None


def _series_arguments(call: Call) -> tuple[Kind, list[Literal]]:
    """The kind of what is looked at, and the values that are given besides."""
    signature = SERIES.get(call.function).signature
    if not call.args:
        raise ExpressionError(f"What is looked at is wanted: {signature}.", where=call.where)
    value, *given = call.args
    if any(isinstance(node, Call) and node.function in SERIES for node in post_order(value)):
        raise ExpressionError(f"`{call.function}` does not look at what itself looks back.", where=value.where)
    for arg in given:
        if not isinstance(arg, Literal):
            raise ExpressionError(f"A value such as 8w is wanted: {signature}.", where=arg.where)
    return kind_of(value), [arg for arg in given if isinstance(arg, Literal)]


def _placed(bad: BadArguments, call: Call) -> ExpressionError:
    where = call.where if bad.about is None or bad.about.where == NOWHERE else bad.about.where
    return ExpressionError(str(bad), where=where)


def _argument(arg: Node, leaf: Leaf) -> Argument:
    """`-5` is a value like 5."""
    if not isinstance(arg, Call):
        return arg
    value = arg.args[0] if arg.function == "neg" and arg.args else arg
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
    if node.function in SERIES:
        shifts_of(node)
        return SERIES.get(node.function).kind
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
