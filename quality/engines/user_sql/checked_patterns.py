"""The patterns in a person's query, where the engine tries one way after the other: they are known before it runs, and cheap.

Java's library (Spark, also for LIKE) does not stop for anybody; others stop at a timeout at best.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from lakehub.user_sql import BadQuery
from quality.engines.scans.pattern_effort import check_effort
from quality.engines.scans.pattern_tree import TooMuchEffort

_LINEAR_DIALECTS = frozenset({"duckdb", "postgres", "sqlite"})
"""RE2; a library that goes through a text once and stops at its timeout; none, in a process that is killed."""
_REGEX_FUNCTIONS: tuple[type[exp.Expr], ...] = (
    *(kind for name, kind in vars(exp).items() if name.startswith("Regexp")),
    exp.SimilarTo,
)
_REGEX_NAMES = frozenset({"regexp_matches", "regexp_full_match"})
_LIKE_BY_REGEX = "spark"
_INLINE_IGNORE_CASE = "(?i)"


def check_patterns(statement: exp.Expr, dialect: str) -> None:
    """Raises BadQuery."""
    if dialect in _LINEAR_DIALECTS:
        return
    for pattern, is_like in _patterns(statement):
        if is_like and dialect != _LIKE_BY_REGEX:
            continue
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise BadQuery(
                f"The pattern {pattern.sql()} is no text in quotes: here a pattern may be tried for ever, so it must be known before."
            )
        text = str(pattern.this)
        ignore_case = text.startswith(_INLINE_IGNORE_CASE)
        try:
            check_effort(
                _like_as_regex(text) if is_like else text.removeprefix(_INLINE_IGNORE_CASE), ignore_case=ignore_case
            )
        except TooMuchEffort as bad:
            raise BadQuery(str(bad)) from None


def _patterns(statement: exp.Expr) -> Iterator[tuple[exp.Expr, bool]]:
    """Each with whether it is one of LIKE."""
    for node in statement.walk():
        if isinstance(node, _REGEX_FUNCTIONS):
            yield node.expression, False
        elif isinstance(node, exp.Like | exp.ILike):
            yield node.expression, True
        elif isinstance(node, exp.Anonymous) and node.name.lower() in _REGEX_NAMES:
            for argument in node.expressions[1:]:
                yield argument, False


def _like_as_regex(pattern: str) -> str:
    """As Spark writes it for Java."""
    return "".join({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
