"""What fastavro would write as another value: a checker for each column whose type may hold one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

Check = Callable[[Any], str | None]
"""What is wrong with a value that is not null; None: nothing."""
_MAX_FLOAT = 3.4028235677973366e38
"""The least that is rounded to infinity, in 32 bits."""


def check_of(avro: Any) -> Check | None:
    """`avro`: the type of a column. None: whatever fastavro takes is written as it is."""
    if isinstance(avro, list):
        branches = [branch for branch in avro if branch != "null"]
        return check_of(branches[0]) if len(branches) == 1 else None
    if not isinstance(avro, dict):
        return _check_float if avro == "float" else None
    match avro.get("logicalType"), avro["type"]:
        case "decimal", _:
            return _decimal_check(avro["precision"], avro["scale"])
        case "date", _:
            return _check_date
        case str() as name, _ if name.startswith("timestamp-"):
            return _check_timestamp
        case _, "array" | "map":
            return _each(avro)
        case _, "record":
            return _fields(avro)
    return None


def _check_float(value: Any) -> str | None:
    is_large = isinstance(value, float | int) and _MAX_FLOAT <= abs(value) < float("inf")
    return "it is too large for 32 bits" if is_large else None


def _decimal_check(precision: int, scale: int) -> Check:
    limit = Decimal(10) ** (precision - scale)

    def check(value: Any) -> str | None:
        if not isinstance(value, Decimal):
            return f"a decimal is needed, not {type(value).__name__}"
        return (
            None if value.is_finite() and value.copy_abs() < limit else f"it does not fit decimal({precision},{scale})"
        )

    return check


def _check_date(value: Any) -> str | None:
    is_date = isinstance(value, date) and not isinstance(value, datetime)
    return None if is_date else f"a date is needed, not {type(value).__name__}"


def _check_timestamp(value: Any) -> str | None:
    if not isinstance(value, datetime):
        return f"a time is needed, not {type(value).__name__}"
    return None if value.tzinfo is not None else "it has no time zone; convert it to UTC"


def _each(avro: Mapping[str, Any]) -> Check | None:
    check = check_of(avro["items" if avro["type"] == "array" else "values"])
    if check is None:
        return None

    def check_each(values: Any) -> str | None:
        if not isinstance(values, list | tuple | dict):
            return None  # fastavro says so
        items = values.values() if isinstance(values, dict) else values
        return next((reason for item in items if item is not None and (reason := check(item))), None)

    return check_each


def _fields(avro: Mapping[str, Any]) -> Check | None:
    checks = {field["name"]: check for field in avro["fields"] if (check := check_of(field["type"]))}
    if not checks:
        return None

    def check_fields(values: Any) -> str | None:
        if not isinstance(values, dict):
            return None  # fastavro says so
        given = ((check, values.get(name)) for name, check in checks.items())
        return next((reason for check, value in given if value is not None and (reason := check(value))), None)

    return check_fields
