"""What kind of values a column holds, whatever its engine calls the type; and values in one form that all engines share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum

from quality.domain.language.measures import Scalar


class ColumnType(StrEnum):
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    INSTANT = "time with a zone"
    LOCAL = "time without a zone"
    BINARY = "binary"
    NESTED = "structure, list or map"
    OTHER = "other"

    @property
    def is_number(self) -> bool:
        return self in (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.FLOAT)


def normalize_value(value: object, kind: ColumnType) -> Scalar:
    """A value of a column of `kind` as it is told by every engine: instants are UTC, local times have no zone.

    Integers are ints even where a database adds them up as decimals; a decimal keeps no zeros at its end.
    """
    if value is None:
        return None
    if isinstance(value, str) and kind in _TEXT_PARSERS:
        return _parse_text(value, kind)
    if isinstance(value, datetime):
        return _normalize_time(value, kind)
    if kind is ColumnType.BOOLEAN:
        return bool(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode() if kind is ColumnType.TEXT else bytes(value).hex()
    if kind.is_number and isinstance(value, int | float | Decimal):
        return _normalize_number(value, kind)
    return value if isinstance(value, int | float | Decimal | date | str) else str(value)


_TEXT_PARSERS: dict[ColumnType, Callable[[str], object]] = {
    ColumnType.INTEGER: int,
    ColumnType.DECIMAL: Decimal,
    ColumnType.DATE: date.fromisoformat,
    ColumnType.INSTANT: datetime.fromisoformat,
    ColumnType.LOCAL: datetime.fromisoformat,
}
"""SQLite hands these over as texts."""


def _parse_text(text: str, kind: ColumnType) -> Scalar:
    """What is no such value stays the text that it is."""
    try:
        return normalize_value(_TEXT_PARSERS[kind](text), kind)
    except (ValueError, ArithmeticError):
        return text


def _normalize_time(value: datetime, kind: ColumnType) -> datetime | date:
    if kind is ColumnType.DATE:
        return value.date()
    if kind is ColumnType.LOCAL:
        return value.replace(tzinfo=None)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _normalize_number(value: float | Decimal, kind: ColumnType) -> int | float | Decimal:
    if kind is ColumnType.INTEGER:
        return int(value)
    return (
        float(value)
        if kind is ColumnType.FLOAT
        else _without_trailing_zeros(Decimal(value) if isinstance(value, int) else value)
    )


def _without_trailing_zeros(value: float | Decimal) -> Decimal:
    """By its digits: arithmetic on decimals rounds to 28 of them."""
    digits = f"{value:f}" if isinstance(value, Decimal) else f"{Decimal(repr(value)):f}"
    return Decimal(digits.rstrip("0").rstrip(".") if "." in digits else digits)


def value_name(value: Scalar) -> str | None:
    """The name of a group or a bin: equal values have one name, whatever their type (4, 4.0 and 4.00); a null has none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return f"{_without_trailing_zeros(value):f}" if isinstance(value, Decimal) else str(value)
