"""Names and kinds, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from lakehub.kernel.partitions import Grain
from quality.domain.language.function_support.arguments import BadArguments
from quality.domain.language.functions import FUNCTIONS, Function
from quality.domain.language.measures import Ask
from quality.domain.language.name_resolution import check_names, check_parameters
from quality.domain.language.operators import OPERATORS, Operator
from quality.domain.language.scope import Scope
from quality.domain.language.tree.errors import NO_RANGE, ExpressionError
from quality.domain.language.tree.nodes import Argument, Call, Expression, Literal, Name, Node, post_order
from quality.domain.language.window_functions import WINDOW_FUNCTIONS
from quality.domain.value_types import ValueType, ValueTypeError

_COLUMN_FUNCTIONS = {"min": "minimum", "max": "maximum", "average": "mean"}


def check_expression(expression: Expression, scope: Scope | None = None) -> None:
    """Raises ExpressionError unless the assertion is true or false and, where a scope is given, its names exist."""
    kind = value_type_of(expression.assertion)
    if kind is not ValueType.BOOLEAN:
        raise ExpressionError(
            f"A test says what must hold, as in ... < 5%; this is only a {kind}.", where=expression.assertion.where
        )
    calls = list(function_calls(expression))
    if not calls:
        raise ExpressionError(
            "The test measures nothing: name a table, as in rows(this) > 0.", where=expression.assertion.where
        )
    call_asks = [(call, ask) for call in calls for ask in asks_of(call)]
    check_parameters(expression, call_asks, scope)
    if scope is not None:
        check_names(call_asks, scope)


def function_calls(expression: Expression) -> Iterator[Call]:
    """What the test measures, in post-order, each as often as it is written."""
    return (node for node in post_order(expression.assertion) if isinstance(node, Call) and node.function in FUNCTIONS)


def window_function_calls(expression: Expression) -> Iterator[Call]:
    """What the test makes of more than one partition."""
    return (
        node
        for node in post_order(expression.assertion)
        if isinstance(node, Call) and node.function in WINDOW_FUNCTIONS
    )


def asks_of(call: Call) -> tuple[Ask, ...]:
    """The measures that a leaf needs. Raises ExpressionError for arguments that it cannot use."""
    leaf = FUNCTIONS.get(call.function)
    try:
        return leaf.asks([_function_argument(arg, leaf) for arg in call.args])
    except BadArguments as bad:
        raise _with_range(bad, call) from None


def shifts_of(call: Call) -> tuple[timedelta, ...]:
    """How far back a series measures its first argument. Raises ExpressionError."""
    kind, given = _window_function_arguments(call)
    try:
        return WINDOW_FUNCTIONS.get(call.function).shifts(kind, given)
    except BadArguments as bad:
        raise _with_range(bad, call) from None


def min_history_of(call: Call, grain: Grain) -> timedelta:
    """How much past a series must have for an answer. Raises ExpressionError."""
    kind, given = _window_function_arguments(call)
    try:
        return WINDOW_FUNCTIONS.get(call.function).min_history(kind, given, grain)
    except BadArguments as bad:
        raise _with_range(bad, call) from None


def _window_function_arguments(call: Call) -> tuple[ValueType, list[Literal]]:
    """The kind of what is looked at, and the values that are given besides."""
    signature = WINDOW_FUNCTIONS.get(call.function).signature
    if not call.args:
        raise ExpressionError(f"What is looked at is wanted: {signature}.", where=call.where)
    value, *given = call.args
    if any(isinstance(node, Call) and node.function in WINDOW_FUNCTIONS for node in post_order(value)):
        raise ExpressionError(f"`{call.function}` does not look at what itself looks back.", where=value.where)
    for arg in given:
        if not isinstance(arg, Literal):
            raise ExpressionError(f"A value such as 8w is wanted: {signature}.", where=arg.where)
    return value_type_of(value), [arg for arg in given if isinstance(arg, Literal)]


def _with_range(bad: BadArguments, call: Call) -> ExpressionError:
    where = call.where if bad.argument is None or bad.argument.where == NO_RANGE else bad.argument.where
    return ExpressionError(str(bad), where=where)


def _function_argument(arg: Node, leaf: Function) -> Argument:
    """`-5` is a value like 5."""
    if not isinstance(arg, Call):
        return arg
    value = arg.args[0] if arg.function == "neg" and arg.args else arg
    if not isinstance(value, Literal) or not isinstance(value.value, Fraction | timedelta):
        raise ExpressionError(
            f"The name of a table or column, or a value, is wanted: {leaf.signature}.", where=arg.where
        )
    return replace(value, value=-value.value, where=arg.where)


def value_type_of(node: Node) -> ValueType:
    """Raises ExpressionError at the innermost node that makes no sense."""
    if isinstance(node, Literal):
        return node.value_type
    if isinstance(node, Name):
        raise ExpressionError(
            f"`{node.dataset}` is a name, not a value: ask for something of it, as in rows({node.dataset}).",
            where=node.where,
        )
    if node.function in FUNCTIONS:
        asks_of(node)
        return FUNCTIONS.get(node.function).value_type
    if node.function in WINDOW_FUNCTIONS:
        shifts_of(node)
        return WINDOW_FUNCTIONS.get(node.function).value_type
    if node.function not in OPERATORS:
        raise ExpressionError(f"`{node.function}` is not known here: no function measures it.", where=node.where)
    return _operator_type(node, OPERATORS[node.function])


def _operator_type(call: Call, operator: Operator) -> ValueType:
    least, most = operator.arity
    namesake = _COLUMN_FUNCTIONS.get(call.function)
    if namesake and any(isinstance(arg, Name) for arg in call.args):
        raise ExpressionError(
            f"`{call.function}` compares values; of a column it is {namesake}(table.column).", where=call.where
        )
    if not least <= len(call.args) <= most:
        expected_count = f"{least}" if least == most else f"{least} to {most}"
        raise ExpressionError(
            f"`{call.function}` takes {expected_count} arguments, not {len(call.args)}.", where=call.where
        )
    kinds = [value_type_of(arg) for arg in call.args]
    try:
        return operator.result_type(kinds, call.args)
    except ValueTypeError as error:
        raise ExpressionError(str(error), where=call.where) from None
