"""Whole columns of plain values in the types of the lake, by Arrow: all of them, or an error where one does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.spark.file_groups.arrow_types import ARROW_TYPES, arrow_type
from ingestion.spark.loading.decimals import decimals_of, to_decimals

UNWRITABLE = (TypeError, ValueError, RecursionError)
"""What JSON raises for a key that is no text, a whole number of thousands of digits, or nesting without end."""
CAST_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    ArithmeticError,
    *UNWRITABLE,
)
_DAYS = (-719_162, 2_932_896)
_MICROSECONDS = 86_400_000_000
_ENDS = {
    ARROW_TYPES["date"]: _DAYS,
    ARROW_TYPES["timestamp"]: (_DAYS[0] * _MICROSECONDS, (_DAYS[1] + 1) * _MICROSECONDS - 1),
}
"""The first and the last that Python and the databases know."""
_MICROSECOND = timedelta(microseconds=1)


def cast_values(values: Sequence[Any], type_: str) -> pa.Array:
    """Of a plain type. All or nothing: an Arrow error where one value does not fit."""
    is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
    if type_.startswith("decimal(") and not is_arrow and not _are_decimals(values):
        return decimals_of(values, arrow_type(type_))
    if type_ == "string" and not is_arrow:
        values = with_texts(values)
    array: pa.Array | pa.ChunkedArray = values if is_arrow else pa.array(values)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    source_type, target = array.type, arrow_type(type_)
    if source_type == target or pa.types.is_null(source_type):
        return array.cast(target)
    if pa.types.is_decimal(target):
        return to_decimals(array, target)
    if type_ == "timestamp":
        return _to_timestamp(array)
    if type_ == "string":
        return _to_string(array)
    if (
        type_ == "boolean"
        and _is_number(source_type)
        and not pc.all(pc.is_in(array, pa.array([0, 1, None], source_type))).as_py()
    ):
        raise pa.ArrowInvalid("a boolean is 0 or 1")
    if type_ == "date" and not (
        pa.types.is_string(source_type) or pa.types.is_date(source_type) or pa.types.is_timestamp(source_type)
    ):
        raise pa.ArrowInvalid("a date is written as 2026-11-16")
    return array.cast(target)


def sound(array: pa.Array) -> pa.Array:
    """A file may hold what its type cannot: bytes that are no text, days and instants of no year from 1 to 9999. Raises ArrowInvalid."""
    if pa.types.is_string(array.type):
        array.validate(full=True)
    elif array.type in _ENDS:
        ends = pc.min_max(array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64())).as_py()
        first, last = _ENDS[array.type]
        if ends["min"] is not None and not (first <= ends["min"] and ends["max"] <= last):
            raise pa.ArrowInvalid("a time is of no year from 1 to 9999")
    return array


def with_texts(values: Iterable[Any]) -> list[Any]:
    """Python's structures as JSON, its times of day and lengths of time as `HH:MM:SS[.ffffff]`, UUIDs as text; all else as it is."""
    return [_TEXTS[type(value)](value) if type(value) in _TEXTS else value for value in values]


def _json_text(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)


def _clock_text(length: timedelta) -> str:
    """MySQL's TIME has 838 hours, and goes below zero."""
    microseconds = abs(length) // _MICROSECOND
    minutes, seconds = divmod(microseconds // 1_000_000, 60)
    fraction = f".{microseconds % 1_000_000:06}" if microseconds % 1_000_000 else ""
    return f"{'-' if length < timedelta() else ''}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{fraction}"


_TEXTS: Mapping[type, Callable[[Any], str]] = {
    dict: _json_text,
    list: _json_text,
    tuple: _json_text,
    time: time.isoformat,
    timedelta: _clock_text,
    UUID: str,
}


def _are_decimals(values: Sequence[Any]) -> bool:
    return set(map(type, values)) <= {Decimal, type(None)}


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _to_timestamp(array: pa.Array) -> pa.Array:
    target, source_type = ARROW_TYPES["timestamp"], array.type
    if pa.types.is_timestamp(source_type):
        aware = array if source_type.tz else pc.assume_timezone(array, "UTC")
        return aware.cast(target, safe=source_type.unit != "ns")
    if pa.types.is_date(source_type):
        return array.cast(pa.timestamp("us")).cast(target)
    if not pa.types.is_string(source_type):
        raise pa.ArrowInvalid("a number is no time: its unit is not known")
    try:
        return array.cast(pa.timestamp("us")).cast(target)
    except pa.ArrowInvalid:
        return pa.array([_parse_instant(text) for text in array.to_pylist()], target)


def _parse_instant(text: str | None) -> datetime | None:
    """ISO 8601; without an offset it is UTC."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _to_string(array: pa.Array) -> pa.Array:
    source_type = array.type
    if pa.types.is_timestamp(source_type):
        return pa.array([None if value is None else value.isoformat() for value in array.to_pylist()], pa.string())
    if pa.types.is_time(source_type):
        array = array.cast(pa.time64("us"), safe=False)
    elif pa.types.is_duration(source_type):
        array = array.cast(pa.duration("us"), safe=False)
    elif not pa.types.is_nested(source_type):
        return array.cast(pa.string())
    return pa.array(with_texts(array.to_pylist()), pa.string())


def python_value(value: Any) -> Any:
    """A value of a chunk, as it is shown: times in ISO 8601. What Python cannot hold is told by its type."""
    try:
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
    except (ValueError, OverflowError) as problem:
        if pa.types.is_nested(value.type):  # a structure with a name twice, or with what is unfit inside
            plain = f"{value.type} with a value that cannot be shown"
        elif isinstance(problem, UnicodeDecodeError):
            plain = value.cast(pa.binary()).as_py()
        else:  # a time of no year that Python knows
            plain = f"{value.type} out of range"
    return plain.isoformat() if isinstance(plain, datetime | date) else plain
