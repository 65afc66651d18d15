"""The parameters of a run that an expression may carry: one line each in PARAMETERS."""

from __future__ import annotations

from datetime import timedelta

from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.amounts import duration_of
from quality.domain.expression.errors import ExpressionError, Where

DURATION: tuple[str, ...] = ()
"""Any duration; a parameter with words takes one of them."""

PARAMETERS: dict[str, tuple[str, ...]] = {
    "engine": ("duckdb", "spark", "sqlalchemy"),
    "partition": ("each", "whole"),
    "sustain": DURATION,
    "cadence": DURATION,
    "timeout": DURATION,
}


def parameter_value(name: str, is_duration: bool, text: str, where: Where) -> str | timedelta:
    """The value of one parameter. Raises ExpressionError."""
    words = PARAMETERS[name]
    if words is DURATION:
        if not is_duration:
            raise ExpressionError(f"`{name}` wants a duration such as 30m, not `{text}`.", where=where)
        return _duration(text, where)
    if text not in words:
        raise ExpressionError(f"`{name}` cannot be `{text}`.{did_you_mean(text, words)}", where=where)
    return text


def _duration(text: str, where: Where) -> timedelta:
    try:
        return duration_of(text)
    except (OverflowError, ValueError):
        raise ExpressionError("The duration is too long.", where=where) from None
