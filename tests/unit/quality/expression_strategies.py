"""Hypothesis strategies: any expression that the grammar can hold."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

from hypothesis import strategies as st

from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.operators import OPERATORS
from quality.domain.language.tree.nodes import Call, Expression, Literal, Name, Node, Parameters
from quality.domain.periods import MAX_DURATION
from quality.domain.value_types import ValueType
from tests.text_strategies import text_of

texts = text_of("ab'\" \n%:[-é(;", 6)
shifts = st.one_of(st.just(0), st.integers(0, 24 * 3660)).map(lambda hours: -timedelta(hours=hours))
NAMES = ("this", "upstream", "flights", "with", "odd name", "a", "dc-1", "ünï", "1st", 'a "b" c', '"', "two\nlines")
words = st.sampled_from(NAMES)
durations = st.integers(0, MAX_DURATION // timedelta(milliseconds=1)).map(lambda ms: timedelta(milliseconds=ms))
decimals = st.builds(lambda digits, shift: Fraction(digits, 10**shift), st.integers(0, 10**9), st.integers(0, 6))
literals = st.one_of(
    decimals.map(lambda value: Literal(value, ValueType.NUMBER)),
    decimals.map(lambda value: Literal(value, ValueType.RATIO)),
    durations.map(lambda value: Literal(value, ValueType.DURATION)),
    st.booleans().map(lambda value: Literal(value, ValueType.BOOLEAN)),
    texts.map(lambda value: Literal(value, ValueType.TEXT)),
)
names = st.builds(Name, words, st.one_of(st.just(""), words), st.one_of(st.just(""), words), shifts)
leaves = st.builds(
    Call, st.sampled_from(sorted(FUNCTIONS)), st.lists(st.one_of(names, literals), max_size=3).map(tuple)
)


def _operations(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    def call(name: str) -> st.SearchStrategy[Node]:
        least, most = OPERATORS[name].arity
        return st.lists(children, min_size=least, max_size=min(most, 3)).map(lambda args: Call(name, tuple(args)))

    return st.sampled_from(sorted(OPERATORS)).flatmap(call)


nodes: st.SearchStrategy[Node] = st.recursive(st.one_of(literals, names, leaves), _operations, max_leaves=12)
parameters = st.builds(
    Parameters,
    engine=st.sampled_from([None, "duckdb", "spark", "sqlalchemy"]),
    partition=st.sampled_from([None, "each", "whole"]),
    sustain=st.one_of(st.none(), durations),
    cadence=st.one_of(st.none(), durations),
    timeout=st.one_of(st.none(), durations),
    by=st.one_of(st.none(), words),
    least=st.one_of(st.none(), st.integers(0, 10**9)),
    most=st.one_of(st.none(), st.integers(0, 10**9)),
    dc=st.one_of(st.none(), words),
    calendar=st.sampled_from([None, "0 6 * * mon-fri", "*/15 9-17 1,15 * *"]),
    holidays=st.sampled_from([None, "US", "US-NY, 2026-12-24"]),
)
expressions = st.builds(Expression, nodes, parameters)
