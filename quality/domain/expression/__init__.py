"""Tests as expressions: text -> nodes -> the same without sugar -> names and kinds checked -> flattened text.

A new operator is a line in `operators.OPERATORS`, a new leaf a file and a line in `leaves`, a new short form a line in `sugar.SUGAR`,
what looks at a value over time a file and a line in `series`.
"""

from __future__ import annotations

from quality.domain.expression.checker import asks_of, check, leaf_calls
from quality.domain.expression.errors import ExpressionError
from quality.domain.expression.nodes import Call, Expression, Literal, Name, Node, Parameters
from quality.domain.expression.parser import parse
from quality.domain.expression.printer import flattened, formula, readable
from quality.domain.expression.scope import THIS, UPSTREAM, Scope
from quality.domain.expression.sugar import without_sugar

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
    "check",
    "flattened",
    "formula",
    "leaf_calls",
    "parse",
    "readable",
    "understand",
    "without_sugar",
]


def understand(text: str, scope: Scope) -> Expression:
    """What `text` asks, whole and checked: ready to be flattened, stored and run. Raises ExpressionError with the place."""
    try:
        expression = without_sugar(parse(text), scope)
        check(expression, scope)
    except ExpressionError as error:
        raise error if "\n" in str(error) else error.located_in(text) from None
    return expression
