"""What the stored text of a version says, cached by it: versions do not change."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import BEGINNING
from lakehub.kernel.partitions import Grain
from quality.domain.evaluation.evaluate import asks_of_expression
from quality.domain.evaluation.lookback_window import first_answerable_start, required_history
from quality.domain.language import Expression, Literal, parse
from quality.domain.language.measures import Ask
from quality.domain.language.type_checker import window_function_calls
from quality.domain.value_types import ValueType


@lru_cache(maxsize=4096)
def parsed(flattened: str) -> Expression:
    """The expression of a test's version. Versions do not change."""
    return parse(flattened)


def is_parsable(flattened: str) -> bool:
    """False for what an older grammar, or older bounds, stored: its result is an ERROR that says why."""
    try:
        parsed(flattened)
    except Exception:
        return False
    return True


def parsed_or_blank(flattened: str) -> Expression:
    """For those who plan and guard: one that is not understood measures nothing and is a test of every copy, so that its
    own result says why, and nothing else is held up by it."""
    return parsed(flattened) if is_parsable(flattened) else _BLANK


_BLANK = Expression(Literal(False, ValueType.BOOLEAN))


@lru_cache(maxsize=4096)
def asks_of_version(flattened: str) -> tuple[Ask, ...]:
    return asks_of_expression(parsed(flattened))


def compares_with_past(flattened: str) -> bool:
    """What is not understood compares nothing; its result says so."""
    return is_parsable(flattened) and any(window_function_calls(parsed(flattened)))


@lru_cache(maxsize=8192)
def first_tested_for(flattened: str, since: datetime, grain: Grain, tz: str) -> datetime:
    """Where the first partition begins that a test of partitions can have an answer for, on what is monitored from `since` on."""
    if since == BEGINNING:
        return since
    return first_answerable_start(since, required_history(parsed_or_blank(flattened), grain), grain, ZoneInfo(tz))
