"""Nodes to text. `flattened` is the stored form, one spelling for each meaning; `readable` is for people. Both parse back."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from quality.domain.language.grammar import RESERVED_WORDS
from quality.domain.language.operators import COMPARISONS, OPERATORS
from quality.domain.language.parameters import PARAMETERS, ParameterValue
from quality.domain.language.tree.literals import format_duration, format_literal, quote_name, quote_text
from quality.domain.language.tree.nodes import Call, Expression, Literal, Name, Node, Parameters

_TIGHTEST = 99
"""Binds more tightly than any operator."""


def flattened(expression: Expression) -> str:
    """`gt(div(rows(this), rows(upstream)), 99.9%) with sustain=30m`."""
    return _call_form(expression.assertion) + _with(expression.parameters)


def readable(expression: Expression) -> str:
    """`rows(this) / rows(upstream) > 99.9% with sustain=30m`."""
    return formula(expression.assertion) + _with(expression.parameters)


def formula(node: Node) -> str:
    """One node in the readable form."""
    return _infix(node)[0]


def _call_form(node: Node) -> str:
    if isinstance(node, Call):
        return f"{node.function}({', '.join(_call_form(arg) for arg in node.args)})"
    return _atom(node)


def _infix(node: Node) -> tuple[str, int]:
    """The text and how tightly it holds together."""
    if not isinstance(node, Call):
        return _atom(node), _TIGHTEST
    operator = OPERATORS.get(node.function)
    if operator is None or not operator.symbol or len(node.args) != operator.arity[0]:
        return f"{node.function}({', '.join(formula(arg) for arg in node.args)})", _TIGHTEST
    strength = operator.precedence
    if operator.arity == (1, 1):
        space = " " if operator.symbol.isalpha() else ""
        return f"{operator.symbol}{space}{_parenthesized(node.args[0], strength)}", strength
    left, right = node.args
    # Operators group to the left, and comparisons do not group at all.
    left_strength = strength + 1 if node.function in COMPARISONS else strength
    return f"{_parenthesized(left, left_strength)} {operator.symbol} {_parenthesized(right, strength + 1)}", strength


def _parenthesized(node: Node, strength: int) -> str:
    text, own = _infix(node)
    return text if own >= strength else f"({text})"


def _atom(node: Literal | Name) -> str:
    if isinstance(node, Literal):
        return format_literal(node.value, node.value_type)
    center = f"@{_word(node.data_center)}" if node.data_center else ""
    shift = f"[-{format_duration(-node.shift)}]" if node.shift else ""
    column = f".{_word(node.column)}" if node.column else ""
    return f"{_word(node.dataset)}{center}{shift}{column}"


def _word(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and name.lower() not in RESERVED_WORDS
    return name if plain else quote_name(name)


def _with(parameters: Parameters) -> str:
    given = {name: value for name, value in asdict(parameters).items() if value is not None}
    pieces = (f"{name}={_parameter(name, value)}" for name, value in sorted(given.items()))
    return f" with {', '.join(pieces)}" if given else ""


def _parameter(name: str, value: ParameterValue) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, int):
        return str(value)
    return quote_text(value) if "TEXT" in PARAMETERS[name].terminals else _word(value)
