"""A person's SQL text as trees, within bounds: the one door through which such a text reaches the parser.

Length, tokens and nesting are counted before the parser runs. It tries some texts in two ways at each level, so that 250
characters can hold it for minutes: its steps are counted as well, and it stops at a number that depends on the text alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

MAX_LENGTH = 20_000
"""Characters."""
MAX_TOKENS = 5_000
"""Words, numbers, texts and signs."""
MAX_NESTING = 24
"""Brackets of any kind and CASE within each other; a level costs the parser some 25 frames of Python's thousand."""
_STEPS_PER_TOKEN = 10
"""Real queries take one to three."""
_STEPS_PER_NODE = 20
"""The printer takes three to five."""
_LEAST_STEPS = 5_000

PARSER_ERRORS = (RecursionError, LookupError, TypeError, ValueError, AttributeError)
"""What the parser raises, besides its own errors, over some texts that make no sense."""


class UnreadableSql(ValueError):
    """A text that is not parsed, or that the parser does not understand; says why."""


class _OverBudget(Exception):
    """No ValueError: the parser must not take it for one of its own and try another way."""


def parse_statements(sql: str, dialect: str) -> tuple[exp.Expr, ...]:
    """The statements of the text, by sqlglot's name of a dialect; "" is what most of them share. Raises UnreadableSql."""
    from sqlglot.errors import SqlglotError

    if len(sql) > MAX_LENGTH:
        raise UnreadableSql(f"it has {len(sql):,} characters, {MAX_LENGTH:,} at most")
    if "\x00" in sql:
        raise UnreadableSql("it has a NUL character")
    try:
        parsed = _bounded_dialect(dialect).parse(sql)
    except _OverBudget as over:
        raise UnreadableSql(str(over)) from None
    except (SqlglotError, *PARSER_ERRORS) as problem:
        raise UnreadableSql(_parser_failure(problem)) from None
    return tuple(statement for statement in parsed if statement is not None)


def write_statement(tree: exp.Expr, dialect: str) -> str:
    """The tree in SQL without comments. Raises UnreadableSql where the dialect cannot say it, or it would get too long."""
    from sqlglot.errors import ErrorLevel, SqlglotError

    bounded = _bounded_dialect(dialect)
    bounded.lakehub_budget.grant(_STEPS_PER_NODE * sum(1 for _ in tree.walk()))
    try:
        return tree.sql(bounded, comments=False, unsupported_level=ErrorLevel.RAISE)
    except _OverBudget as over:
        raise UnreadableSql(str(over)) from None
    except (SqlglotError, *PARSER_ERRORS) as problem:
        raise UnreadableSql(_parser_failure(problem)) from None


def _parser_failure(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if errors := getattr(problem, "errors", None):
        return f"line {errors[0]['line']}, column {errors[0]['col']}: {errors[0]['description']}".rstrip(".")
    return (str(problem).splitlines() or ["it makes no sense"])[0].rstrip(".")


# The parser, metered


def _bounded_dialect(name: str) -> Any:
    """A dialect of its own for one text: also the types and paths that the parser parses on the way draw on its budget."""
    from sqlglot.dialects.dialect import Dialect

    # Athena hands queries to Trino, by a parser of its own inside.
    dialect: Any = Dialect.get_or_raise("trino" if name == "athena" else name)
    dialect.parser_class = _metered(dialect.parser_class)  # of this instance alone
    dialect.generator_class = _metered_generator(dialect.generator_class)
    dialect.lakehub_budget = _Budget()
    return dialect


class _Budget:
    """The steps that parser or printer have left. The first text, which is the whole, grants them; those inside of it only spend."""

    def __init__(self) -> None:
        self._left: int | None = None

    def grant(self, steps: int) -> None:
        if self._left is None:
            self._left = _LEAST_STEPS + steps

    def spend(self) -> None:
        assert self._left is not None
        self._left -= 1
        if self._left < 0:
            raise _OverBudget("it takes too long to read: write it with fewer calls inside each other")


@lru_cache(maxsize=64)
def _metered(parser: type) -> type:
    class MeteredParser(parser):  # type: ignore[misc]
        def _parse(
            self, parse_method: Callable[..., exp.Expr | None], raw_tokens: list[Token], sql: str | None = None
        ) -> list[exp.Expr | None]:
            _check_size(raw_tokens)
            _check_intervals(raw_tokens)
            self.dialect.lakehub_budget.grant(_STEPS_PER_TOKEN * len(raw_tokens))
            # Hints are comments in which another text would be parsed; they change nothing that a query reads.
            tokens = [token for token in raw_tokens if token.token_type.name != "HINT"]
            parsed: list[exp.Expr | None] = super()._parse(parse_method, tokens, sql)
            return parsed

        def _advance(self, times: int = 1) -> None:
            self.dialect.lakehub_budget.spend()
            super()._advance(times)

    return MeteredParser


@lru_cache(maxsize=64)
def _metered_generator(generator: type) -> type:
    class MeteredGenerator(generator):  # type: ignore[misc]
        """Some functions are written with an argument twice: each level doubles the text."""

        def sql(self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True) -> str:
            self.dialect.lakehub_budget.spend()
            text: str = super().sql(expression, key, comment)
            if len(text) > MAX_LENGTH:
                raise _OverBudget(f"it becomes longer than {MAX_LENGTH:,} characters")
            return text

    return MeteredGenerator


def _check_size(tokens: Sequence[Token]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise _OverBudget(f"it has {len(tokens):,} words and signs, {MAX_TOKENS:,} at most")
    if (levels := nesting(token.token_type.name for token in tokens)) > MAX_NESTING:
        raise _OverBudget(f"it is nested {levels} levels deep, {MAX_NESTING} at most")


def _check_intervals(tokens: Sequence[Token]) -> None:
    """Of a text with one number and unit the parser takes these, and drops the rest: `50 days ago`, `1 day 12:30`."""
    from sqlglot.expressions import INTERVAL_STRING_RE

    for token, following in pairwise(tokens):
        if token.token_type.name == "INTERVAL" and following.token_type.name.endswith("STRING"):
            text = following.text
            if len(INTERVAL_STRING_RE.findall(text)) == 1 and INTERVAL_STRING_RE.fullmatch(text) is None:
                raise _OverBudget(f"the interval '{text[:40]}' is not understood: write INTERVAL '50' DAY")


_OPENING = frozenset({"L_PAREN", "L_BRACKET", "L_BRACE", "CASE"})
_CLOSING = {"R_PAREN": "L_PAREN", "R_BRACKET": "L_BRACKET", "R_BRACE": "L_BRACE", "END": "CASE"}


def nesting(token_types: Iterable[str]) -> int:
    """The deepest level; what closes another kind than the last that was opened closes nothing."""
    opened: list[str] = []
    deepest = 0
    for kind in token_types:
        if kind in _OPENING:
            opened.append(kind)
            deepest = max(deepest, len(opened))
        elif opened and _CLOSING.get(kind) == opened[-1]:
            opened.pop()
    return deepest
