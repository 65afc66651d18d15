"""Literals as text and back: exact decimals, percentages and durations, each with one canonical form."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.nodes import Amount

_UNITS = (
    ("w", timedelta(weeks=1)),
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("m", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
    ("ms", timedelta(milliseconds=1)),
    ("us", timedelta(microseconds=1)),
)
_UNIT_OF = dict(_UNITS)
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|us|[wdhms])")


def duration_of(text: str) -> timedelta:
    """`1h30m` or `1.5h`. Raises OverflowError past some 2.7 million years."""
    return sum(
        (
            _UNIT_OF[unit] * float(number) if "." in number else _UNIT_OF[unit] * int(number)
            for number, unit in _PIECE.findall(text)
        ),
        timedelta(),
    )


def duration_text(value: timedelta) -> str:
    """The canonical form, greatest unit first: `1h30m`."""
    rest, pieces = value, []
    for unit, width in _UNITS:
        count, rest = divmod(rest, width)
        if count:
            pieces.append(f"{count}{unit}")
    return "".join(pieces) or "0s"


def decimal_text(value: Fraction) -> str:
    """All the digits of a fraction that has finitely many; `value` is not negative."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    scaled = str((value * 10**digits).numerator).rjust(digits + 1, "0")
    return f"{scaled[:-digits]}.{scaled[-digits:]}" if digits else scaled


def text_of(quoted: str) -> str:
    """`'it''s'` without its quotes."""
    return quoted[1:-1].replace("''", "'")


def text_literal(value: str) -> str:
    """In single quotes; one within is doubled, as in SQL."""
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def literal_text(value: Amount, kind: Kind) -> str:
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return duration_text(value)
    return f"{decimal_text(value * 100)}%" if kind is Kind.RATIO else decimal_text(value)


def shown(value: Amount, kind: Kind) -> str:
    """For people: `98.98%`, `26,115`, `3h 20m`; rounded down to what can be read, never up to a threshold."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return _duration_shown(value)
    if kind is Kind.RATIO:
        percent = value * 100
        return f"{_rounded(percent, min(abs(percent), abs(100 - percent)))}%"
    return _rounded(value, abs(value))


def _rounded(value: Fraction, size: Fraction) -> str:
    """With digits enough to be right within 0.5% of `size`: a share's is its distance from none or all, so that 99.9899%
    does not look like the 99.99% that it should be."""
    if value.denominator == 1:
        return f"{value.numerator:,}"
    digits = next((digits for digits in (2, 3, 4, 6) if abs(value - round(value, digits)) * 200 <= size), 8)
    return f"{float(value):,.{digits}f}"


def _duration_shown(value: timedelta) -> str:
    sign, rest = ("-", -value) if value < timedelta() else ("", value)
    pieces = []
    for unit, width in _UNITS[1:5]:
        count, rest = divmod(rest, width)
        if count:
            pieces.append(f"{count} {unit if unit != 'm' else 'min'}")
    return sign + (" ".join(pieces[:2]) or "0 s")
