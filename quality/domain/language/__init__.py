"""Tests as expressions: text -> nodes -> the same without macros -> names and kinds checked -> flattened text.

A new operator is a line in `operators.OPERATORS`, a new function a file and a line in `functions`, a new short form a line in
`macros.MACROS`, what looks at a value over time a file and a line in `window_functions`.
"""

from __future__ import annotations

from quality.domain.language.macros import expand_macros
from quality.domain.language.parser import MAX_LENGTH, parse
from quality.domain.language.printer import flattened, formula, readable
from quality.domain.language.scope import THIS, UPSTREAM, Scope
from quality.domain.language.tree.errors import ExpressionError
from quality.domain.language.tree.nodes import Call, Expression, Literal, Name, Node, Parameters
from quality.domain.language.type_checker import asks_of, check_expression, function_calls

__all__ = [
    "THIS",
    "UPSTREAM",
    "Call",
    "Expression",
    "ExpressionError",
    "Literal",
    "Name",
    "Node",
    "Parameters",
    "Scope",
    "asks_of",
    "check_expression",
    "expand_macros",
    "flattened",
    "formula",
    "function_calls",
    "parse",
    "readable",
    "understand",
]


def understand(text: str, scope: Scope) -> Expression:
    """What `text` asks, whole and checked: ready to be flattened, stored and run. Raises ExpressionError with the place."""
    try:
        expression = expand_macros(parse(text), scope)
        check_expression(expression, scope)
        _refuse_too_long(expression)
    except ExpressionError as error:
        raise error if "\n" in str(error) else error.located_in(text) from None
    return expression


def _refuse_too_long(expression: Expression) -> None:
    """What is stored is parsed again, within the same bound."""
    length = len(flattened(expression))
    if length > MAX_LENGTH:
        raise ExpressionError(
            f"The expression has {length:,} characters with its short forms written out; {MAX_LENGTH:,} are the most.",
            where=expression.assertion.where,
        )
