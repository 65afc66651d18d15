"""Parsed expressions and the asks in them, cached by the stored text: versions do not change."""

from __future__ import annotations

from functools import lru_cache

from quality.domain.evaluation.evaluate import asks_of_expression
from quality.domain.language import Expression, parse
from quality.domain.language.measures import Ask


@lru_cache(maxsize=4096)
def parsed(flattened: str) -> Expression:
    """The expression of a test's version. Versions do not change."""
    return parse(flattened)


def is_parsable(flattened: str) -> bool:
    """False for what an older grammar stored: its result is an ERROR that says why."""
    try:
        parsed(flattened)
    except Exception:
        return False
    return True


@lru_cache(maxsize=4096)
def asks_of_version(flattened: str) -> tuple[Ask, ...]:
    return asks_of_expression(parsed(flattened))
