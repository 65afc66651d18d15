"""Literals as text and back: exact decimals, percentages and durations, each with one canonical form."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from quality.domain.language.tree.nodes import Amount
from quality.domain.periods import MAX_DURATION
from quality.domain.value_types import ValueType

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
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|[wdhms])")


def parse_duration(text: str) -> timedelta:
    """`1h30m` or `1.5h`. Raises OverflowError past MAX_DURATION, ValueError for more digits than a number may have."""
    length = sum(
        (
            _UNIT_OF[unit] * float(number) if "." in number else _UNIT_OF[unit] * int(number)
            for number, unit in _DURATION_PART.findall(text)
        ),
        timedelta(),
    )
    if length > MAX_DURATION:
        raise OverflowError(f"{length} is longer than {MAX_DURATION}")
    return length


def is_duration(text: str) -> bool:
    """Written as one, of whatever length."""
    return bool(text) and _DURATION_PART.sub("", text) == ""


def format_duration(value: timedelta) -> str:
    """The canonical form, greatest unit first: `1h30m`."""
    rest, pieces = value, []
    for unit, width in _UNITS:
        count, rest = divmod(rest, width)
        if count:
            pieces.append(f"{count}{unit}")
    return "".join(pieces) or "0s"


def format_decimal(value: Fraction) -> str:
    """All the digits of a fraction that has finitely many; `value` is not negative."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    scaled = str((value * 10**digits).numerator).rjust(digits + 1, "0")
    return f"{scaled[:-digits]}.{scaled[-digits:]}" if digits else scaled


def unquote_text(quoted: str) -> str:
    """`'it''s'` without its quotes."""
    return quoted[1:-1].replace("''", "'")


def unquote_name(written: str) -> str:
    """A name without its quotes, of which those within are written twice; what has none is the name itself."""
    return written[1:-1].replace('""', '"') if written.startswith('"') else written


def quote_name(name: str) -> str:
    """In double quotes; one within is doubled, as in SQL: columns of other people may be called anything."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def quote_text(value: str) -> str:
    """In single quotes; one within is doubled, as in SQL."""
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def format_literal(value: Amount, kind: ValueType) -> str:
    if isinstance(value, str):
        return quote_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return format_duration(value)
    return f"{format_decimal(value * 100)}%" if kind is ValueType.RATIO else format_decimal(value)


def display_amount(value: Amount, kind: ValueType) -> str:
    """For people: `98.98%`, `26,115`, `3h 20m`; rounded down to what can be read, never up to a threshold."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return _display_duration(value)
    if kind is ValueType.RATIO:
        percent = value * 100
        return f"{_round_for_display(percent, min(abs(percent), abs(100 - percent)))}%"
    return _round_for_display(value, abs(value))


def _round_for_display(value: Fraction, size: Fraction) -> str:
    """With digits enough to be right within 0.5% of `size`: a share's is its distance from none or all, so that 99.9899%
    does not look like the 99.99% that it should be."""
    if value.denominator == 1:
        return f"{value.numerator:,}"
    digits = next((digits for digits in (2, 3, 4, 6) if abs(value - round(value, digits)) * 200 <= size), 8)
    return f"{float(value):,.{digits}f}"


def _display_duration(value: timedelta) -> str:
    sign, rest = ("-", -value) if value < timedelta() else ("", value)
    pieces = []
    for unit, width in _UNITS[1:5]:
        count, rest = divmod(rest, width)
        if count:
            pieces.append(f"{count} {unit if unit != 'm' else 'min'}")
    return sign + (" ".join(pieces[:2]) or "0 s")
