"""Make rows fit a schema: whole columns at a time with Arrow, value by value only in a column of a chunk that does not cast.

What does not fit is no loss and no crash: the row goes to the error table with the column and the reason.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.domain.schema import Schema
from ingestion.sources import Chunk

_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Rules:
    """`required` columns (keys, partition, reference key) hold no null; the partition's value names a folder."""

    schema: Schema
    required: tuple[str, ...] = ()
    partition_column: str | None = None


@dataclass(frozen=True)
class Misfit:
    """A row that was read but cannot be stored. `raw` is the row as JSON, or the text that was no row at all."""

    column: str
    reason: str
    raw: str


@dataclass(frozen=True)
class Fitted:
    rows: pa.Table
    misfits: tuple[Misfit, ...]


def fit(chunk: Chunk, rules: Rules) -> Fitted:
    """The rows that fit, with exactly the schema's columns, and the others with the first reason against each."""
    reasons: dict[int, tuple[str, str]] = {}
    arrays = [_fit_column(chunk, column.name, column.type, reasons) for column in rules.schema]
    table = pa.table(arrays, names=list(rules.schema.names))
    _refuse_nulls(table, rules.required, reasons)
    _refuse_folders(table, rules.partition_column, reasons)
    _refuse_unknown(chunk, rules.schema, reasons)
    misfits = tuple(Misfit(column, reason, raw_row(chunk, row)) for row, (column, reason) in sorted(reasons.items()))
    broken = tuple(Misfit("", each.reason, each.raw) for each in chunk.unreadable)
    return Fitted(_without(table, reasons), misfits + broken)


def arrow_type(name: str) -> pa.DataType:
    if name.startswith("decimal("):
        precision, scale = name[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW[name]


def raw_row(chunk: Chunk, row: int) -> str:
    return json.dumps(
        {name: _plain(values[row]) for name, values in chunk.columns.items()}, default=str, sort_keys=True
    )


def _fit_column(chunk: Chunk, name: str, type_: str, reasons: dict[int, tuple[str, str]]) -> pa.Array:
    values = chunk.columns.get(name)
    if values is None:
        return pa.nulls(chunk.rows, arrow_type(type_))
    if not _is_of_one_kind(values, type_):
        return _one_by_one(values, name, type_, reasons)
    try:
        return cast(values, type_)
    except _REFUSALS:
        return _one_by_one(values, name, type_, reasons)


def _is_of_one_kind(values: Sequence[Any], type_: str) -> bool:
    """Arrow makes numbers of booleans that stand beside numbers, and fractions of numbers beside fractions."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return True
    kinds = set(map(type, values)) - {type(None)}
    return len(kinds) <= 1 or (type_ == "double" and kinds == {int, float})


def _one_by_one(values: Sequence[Any], name: str, type_: str, reasons: dict[int, tuple[str, str]]) -> pa.Array:
    kept: list[object] = []
    for row, value in enumerate(values):
        plain = _plain(value)
        try:
            kept.append(cast([plain], type_)[0].as_py())
        except _REFUSALS:
            kept.append(None)
            reasons.setdefault(row, (name, f"`{name}` is {_shown(plain)}, which is no {type_}"))
    return pa.array(kept, arrow_type(type_))


def cast(values: Sequence[Any], type_: str) -> pa.Array:
    """All or nothing: an Arrow error where one value does not fit."""
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    found, target = array.type, arrow_type(type_)
    if found == target or pa.types.is_null(found):
        return array.cast(target)
    if type_ == "timestamp":
        return _to_timestamp(array)
    if type_ == "string":
        return _to_string(array)
    if type_ == "boolean" and _is_number(found) and not pc.all(pc.is_in(array, pa.array([0, 1, None], found))).as_py():
        raise pa.ArrowInvalid("a boolean is 0 or 1")
    if type_ == "date" and not (pa.types.is_string(found) or pa.types.is_date(found) or pa.types.is_timestamp(found)):
        raise pa.ArrowInvalid("a date is written as 2026-11-16")
    return array.cast(target)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _to_timestamp(array: pa.Array) -> pa.Array:
    target, found = _ARROW["timestamp"], array.type
    if pa.types.is_timestamp(found):
        aware = array if found.tz else pc.assume_timezone(array, "UTC")
        return aware.cast(target, safe=False)
    if pa.types.is_date(found):
        return array.cast(pa.timestamp("us")).cast(target)
    if not pa.types.is_string(found):
        raise pa.ArrowInvalid("a number is no time: its unit is not known")
    try:
        return array.cast(pa.timestamp("us")).cast(target)
    except pa.ArrowInvalid:
        return pa.array([_instant(text) for text in array.to_pylist()], target)


def _instant(text: str | None) -> datetime | None:
    """ISO 8601; without an offset it is UTC."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _to_string(array: pa.Array) -> pa.Array:
    found = array.type
    if pa.types.is_timestamp(found):
        return pa.array([None if each is None else each.isoformat() for each in array.to_pylist()], pa.string())
    if pa.types.is_nested(found):
        return pa.array(
            [None if each is None else json.dumps(each, default=str, sort_keys=True) for each in array.to_pylist()],
            pa.string(),
        )
    return array.cast(pa.string())


def _refuse_nulls(table: pa.Table, required: Collection[str], reasons: dict[int, tuple[str, str]]) -> None:
    for name in required:
        if table[name].null_count:
            for row in pc.indices_nonzero(table[name].is_null()).to_pylist():
                reasons.setdefault(row, (name, f"`{name}` is null, but it is a key"))


def _refuse_folders(table: pa.Table, column: str | None, reasons: dict[int, tuple[str, str]]) -> None:
    if column is None:
        return
    unfit = pc.fill_null(pc.match_substring_regex(table[column], r"^$|/"), False)
    if pc.any(unfit).as_py():
        for row in pc.indices_nonzero(unfit).to_pylist():
            value = table[column][row].as_py()
            reasons.setdefault(
                row, (column, f"`{column}` is {value!r}: a partition's name is not empty and has no slash")
            )


def _refuse_unknown(chunk: Chunk, schema: Schema, reasons: dict[int, tuple[str, str]]) -> None:
    """A value in a column that nobody knows would be lost in silence."""
    for name in sorted(set(chunk.columns) - set(schema.names)):
        for row, value in enumerate(chunk.columns[name]):
            if _plain(value) is not None:
                reasons.setdefault(row, (name, f"`{name}` is no column of the source's schema"))


def _without(table: pa.Table, reasons: Mapping[int, object]) -> pa.Table:
    if not reasons:
        return table
    kept = [True] * table.num_rows
    for row in reasons:
        kept[row] = False
    return table.filter(pa.array(kept))


def _plain(value: Any) -> Any:
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    return plain.isoformat() if isinstance(plain, datetime | date) else plain


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
