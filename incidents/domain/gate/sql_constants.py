"""Constants of SQL as they are written: only what every database that speaks the dialect reads in one way."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TypeGuard

from sqlglot import exp

_TIME = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_CANONICAL = re.compile(_TIME + r"(Z|[+-]\d\d(:\d\d)?)?)?", re.ASCII)
_CANONICAL_OF_MYSQL = re.compile(_TIME + r"|[ T]\d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d:\d\d)?", re.ASCII)
"""Behind `00:00` it reads `+05` as seconds; with `+0530` or a Z a text is no time to it."""


def written_time(text: str, dialect: str) -> datetime | None:
    """None: it is no time, or not to everybody. Raises ValueError where there is no such time."""
    canonical = _CANONICAL_OF_MYSQL if dialect == "mysql" else _CANONICAL
    if canonical.fullmatch(text) is None:
        return None  # `20261116` stands before all that 2026 has, where a column holds texts
    return datetime.fromisoformat(text)


def are_of_one_kind(constants: Collection[exp.Expr]) -> bool:
    """All texts, all numbers, or all neither. Where they differ, a database may take all of them, and the column, for numbers or dates."""
    return len({_kind(constant.unnest()) for constant in constants}) == 1


def _kind(constant: exp.Expr) -> str:
    if isinstance(constant, exp.Literal):
        return "text" if constant.is_string else "number"
    return "typed"


def is_text(node: exp.Expr) -> bool:
    """Without a type of its own, and more than a day."""
    return isinstance(node.unnest(), exp.Literal) and not is_day(node.unnest())


def is_day(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and len(node.this) == len("2026-11-16")


def is_plain_date(node: exp.Expr) -> TypeGuard[exp.Date | exp.TsOrDsToDate]:
    """Of one argument: a second one is a zone, a way to read texts, or moves the day."""
    parts = (part for part, value in node.args.items() if value not in (None, False, []))
    return isinstance(node, exp.Date | exp.TsOrDsToDate) and set(parts) == {"this"}


def is_count(text: str) -> bool:
    """In digits that every database reads: to MySQL an Arabic nine is nothing."""
    return text.isascii() and text.isdecimal()


def interval_length(node: exp.Expr) -> tuple[timedelta, timedelta] | None:
    """The shortest and the longest that an INTERVAL may be."""
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    # Of `DAY TO SECOND` it depends on the database which of both is counted.
    unit = node.unit.name.lower().removesuffix("s") if isinstance(node.unit, exp.Var) else ""
    count = node.this.this
    if unit not in _INTERVAL_LENGTHS or not is_count(count) or len(count) >= 6:
        return None
    least, most = _INTERVAL_LENGTHS[unit]
    return int(count) * least, int(count) * most + timedelta(hours=1)


_INTERVAL_LENGTHS = {
    "minute": (timedelta(minutes=1), timedelta(minutes=1)),
    "hour": (timedelta(hours=1), timedelta(hours=1)),
    "day": (timedelta(hours=23), timedelta(hours=25)),
    "week": (timedelta(days=6, hours=23), timedelta(days=7, hours=1)),
    "month": (timedelta(days=27, hours=23), timedelta(days=31, hours=1)),
    "year": (timedelta(days=364, hours=23), timedelta(days=366, hours=1)),
}
