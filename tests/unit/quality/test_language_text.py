"""Parsing and printing are each other's inverse, and no text crashes the parser."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quality.domain.language import Expression, ExpressionError, Scope, flattened, parse, readable, understand
from tests.rounds import rounds
from tests.text_strategies import any_text
from tests.unit.quality.expression_strategies import expressions

FRAGMENTS = [
    "rows(this)",
    "this",
    "@",
    ".",
    "dc1",
    "(",
    ")",
    ",",
    "<",
    "<=",
    "99.9%",
    "%",
    "2h",
    "1h30m",
    "0.5",
    "-",
    "/",
    "not ",
    " and ",
    '"',
    '"a b"',
    "with ",
    "sustain=",
    "freshness",
    "\n",
    "é",
    "1e9",
    "[-7d]",
    "[",
    "]",
    "'it''s'",
    "'",
    " with by=",
    "$",
    " ",
]


@given(expressions)
def test_what_is_flattened_parses_to_the_same(expression: Expression) -> None:
    assert parse(flattened(expression)) == expression


@given(expressions)
def test_what_is_readable_parses_to_the_same(expression: Expression) -> None:
    assert parse(readable(expression)) == expression


@given(expressions)
def test_flattening_is_canonical(expression: Expression) -> None:
    once = flattened(expression)
    assert flattened(parse(once)) == once == flattened(parse(readable(expression)))


@given(st.one_of(any_text(60), st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)))
@settings(max_examples=rounds(50))
def test_any_text_is_understood_or_refused_with_a_place(text: str) -> None:
    error = None
    try:
        understand(text, Scope(tables={"this": None}))
    except ExpressionError as refused:
        error = refused
    assert error is None or min(error.line, error.column) >= 1


@pytest.mark.parametrize(
    "text",
    ["(" * 1900 + "1" + ")" * 1900, "not " * 900 + "true", "-" * 3000 + "1", "1" * 3999, "9" * 40 + "w", "rows(" * 700],
)
def test_hostile_depth_and_size_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        understand(text, Scope(tables={"this": None}))
