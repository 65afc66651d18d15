"""Make rows fit a schema: whole columns at a time with Arrow, value by value only in a column of a chunk that does not cast.

What does not fit is no loss and no crash: the row goes to the error table with the column and the reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.domain.schema import Schema
from ingestion.sources import Chunk
from ingestion.spark.loading.decimals import decimals_of, to_decimals
from ingestion.spark.loading.partition_names import partition_names
from lakehub.kernel.partitions.form import PartitionForm

_ARROW_TYPES = {
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
_DAYS = (-719_162, 2_932_896)
_MICROSECONDS = 86_400_000_000
_ENDS = {
    _ARROW_TYPES["date"]: _DAYS,
    _ARROW_TYPES["timestamp"]: (_DAYS[0] * _MICROSECONDS, (_DAYS[1] + 1) * _MICROSECONDS - 1),
}
"""The first and the last that Python and the databases know."""
_CAST_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class FitRules:
    """`required` columns (keys, partition, reference key) hold no null; the partition's value names a folder.

    With a `partition_form` the partition column is made from the columns that say the partition; `only` are the names of those
    that are wanted (None: all).
    """

    schema: Schema
    required: tuple[str, ...] = ()
    partition_column: str | None = None
    partition_form: PartitionForm | None = None
    only: frozenset[str] | None = None


@dataclass(frozen=True)
class RejectedRow:
    """A row that was read but cannot be stored. `raw` is the row as JSON, or the text that was no row at all."""

    column: str
    reason: str
    raw: str


@dataclass(frozen=True)
class FitResult:
    """`misplaced`: the values that are no partition, with their number of rows, which are rejected; `skipped` rows are of
    partitions that are not wanted; `nulls`: by required column the rows that are rejected since it is null there."""

    rows: pa.Table
    rejected: tuple[RejectedRow, ...]
    misplaced: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0
    nulls: Mapping[str, int] = field(default_factory=dict)


def fit_rows(chunk: Chunk, rules: FitRules) -> FitResult:
    """The rows that fit, with exactly the schema's columns, and the others with the first reason against each."""
    reasons: dict[int, tuple[str, str]] = {}
    arrays = [_fit_column(chunk, column.name, column.type, reasons) for column in rules.schema]
    table = pa.table(arrays, names=list(rules.schema.names))
    misplaced = Counter[str]()
    if rules.partition_form is not None and rules.partition_column is not None:
        table = _with_partition(table, chunk, rules.partition_column, rules.partition_form, reasons, misplaced)
    nulls = _reject_nulls(table, rules.required, reasons)
    _reject_bad_partition_values(table, rules.partition_column, reasons)
    _reject_unknown_columns(chunk, rules.schema, reasons)
    unwanted = _unwanted_rows(table, rules)
    misfits = tuple(
        RejectedRow(column, reason, raw_row_json(chunk, row))
        for row, (column, reason) in sorted(reasons.items())
        if row not in unwanted
    )
    broken = tuple(RejectedRow("", unreadable_row.reason, unreadable_row.raw) for unreadable_row in chunk.unreadable)
    kept = _without_rows(table, reasons.keys() | unwanted)
    return FitResult(kept, misfits + broken, {} if rules.only is not None else misplaced, len(unwanted), nulls)


def arrow_type(name: str) -> pa.DataType:
    if name.startswith("decimal("):
        precision, scale = name[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW_TYPES[name]


def raw_row_json(chunk: Chunk, row: int) -> str:
    return json.dumps(
        {name: _python_value(values[row]) for name, values in chunk.columns.items()}, default=str, sort_keys=True
    )


def _fit_column(chunk: Chunk, name: str, type_: str, reasons: dict[int, tuple[str, str]]) -> pa.Array:
    values = chunk.columns.get(name)
    if values is None:
        return pa.nulls(chunk.rows, arrow_type(type_))
    if not _has_one_type(values, type_):
        return _cast_one_by_one(values, name, type_, reasons)
    try:
        return _sound(cast_values(values, type_))
    except _CAST_ERRORS:
        return _cast_one_by_one(values, name, type_, reasons)


def _has_one_type(values: Sequence[Any], type_: str) -> bool:
    """Arrow makes numbers of booleans that stand beside numbers, and fractions of numbers beside fractions.

    For a decimal column nothing is made of them: each number is judged by itself.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray) or type_.startswith("decimal("):
        return True
    kinds = set(map(type, values)) - {type(None)}
    return len(kinds) <= 1 or (type_ == "double" and kinds == {int, float})


def _cast_one_by_one(values: Sequence[Any], name: str, type_: str, reasons: dict[int, tuple[str, str]]) -> pa.Array:
    fitted_values: list[object] = []
    for row, value in enumerate(values):
        plain = _python_value(value)
        try:
            fitted_values.append(cast_values([plain], type_)[0].as_py())
        except _CAST_ERRORS:
            fitted_values.append(None)
            reasons.setdefault(row, (name, f"`{name}` is {_display_value(plain)}, which is no {type_}"))
    return pa.array(fitted_values, arrow_type(type_))


def cast_values(values: Sequence[Any], type_: str) -> pa.Array:
    """All or nothing: an Arrow error where one value does not fit."""
    if (
        type_.startswith("decimal(")
        and not isinstance(values, pa.Array | pa.ChunkedArray)
        and not _are_decimals(values)
    ):
        return decimals_of(values, arrow_type(type_))
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
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


def _sound(array: pa.Array) -> pa.Array:
    """A file may hold what its type cannot: bytes that are no text, days and instants of no year from 1 to 9999. Raises ArrowInvalid."""
    if pa.types.is_string(array.type):
        array.validate(full=True)
    elif array.type in _ENDS:
        ends = pc.min_max(array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64())).as_py()
        first, last = _ENDS[array.type]
        if ends["min"] is not None and not (first <= ends["min"] and ends["max"] <= last):
            raise pa.ArrowInvalid("a time is of no year from 1 to 9999")
    return array


def _are_decimals(values: Sequence[Any]) -> bool:
    return set(map(type, values)) <= {Decimal, type(None)}


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _to_timestamp(array: pa.Array) -> pa.Array:
    target, source_type = _ARROW_TYPES["timestamp"], array.type
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
    if pa.types.is_nested(source_type):
        return pa.array(
            [None if value is None else json.dumps(value, default=str, sort_keys=True) for value in array.to_pylist()],
            pa.string(),
        )
    return array.cast(pa.string())


def _reject_nulls(table: pa.Table, required: Collection[str], reasons: dict[int, tuple[str, str]]) -> Mapping[str, int]:
    """How many rows each of the columns rejects; a row counts for the first column that is against it."""
    rejected = Counter[str]()
    for name in required:
        if table[name].null_count:
            for row in pc.indices_nonzero(table[name].is_null()).to_pylist():
                rejected[name] += row not in reasons
                reasons.setdefault(row, (name, f"`{name}` is null, but it is a key"))
    return rejected


def _reject_bad_partition_values(table: pa.Table, column: str | None, reasons: dict[int, tuple[str, str]]) -> None:
    if column is None:
        return
    unfit = pc.fill_null(pc.match_substring_regex(table[column], r"^$|/"), False)
    if pc.any(unfit).as_py():
        for row in pc.indices_nonzero(unfit).to_pylist():
            value = table[column][row].as_py()
            reasons.setdefault(
                row, (column, f"`{column}` is {value!r}: a partition's name is not empty and has no slash")
            )


def _reject_unknown_columns(chunk: Chunk, schema: Schema, reasons: dict[int, tuple[str, str]]) -> None:
    """A value in a column that nobody knows would be lost in silence."""
    for name in sorted(set(chunk.columns) - set(schema.names)):
        for row, value in enumerate(chunk.columns[name]):
            if _python_value(value) is not None:
                reasons.setdefault(row, (name, f"`{name}` is no column of the source's schema"))


def _with_partition(
    table: pa.Table,
    chunk: Chunk,
    target: str,
    form: PartitionForm,
    reasons: dict[int, tuple[str, str]],
    misplaced: Counter[str],
) -> pa.Table:
    names = partition_names([table[column] for column in form.columns], chunk.columns.get(form.columns[0]), form)
    for row in pc.indices_nonzero(names.is_null()).to_pylist():
        if row in reasons:
            continue
        value = "/".join(str(table[column][row].as_py()) for column in form.columns)[:200]
        misplaced[value] += 1
        reasons[row] = (form.columns[0], f"`{form.columns[0]}` is {value!r}, which is no {form.grain}")
    return table.set_column(table.schema.get_field_index(target), target, names)


def _unwanted_rows(table: pa.Table, rules: FitRules) -> frozenset[int]:
    if rules.only is None or rules.partition_column is None:
        return frozenset()
    wanted = pc.is_in(table[rules.partition_column], pa.array(sorted(rules.only), pa.string()))
    return frozenset(pc.indices_nonzero(pc.invert(wanted)).to_pylist())


def _without_rows(table: pa.Table, rows: Collection[int]) -> pa.Table:
    if not rows:
        return table
    keep_mask = [True] * table.num_rows
    for row in rows:
        keep_mask[row] = False
    return table.filter(pa.array(keep_mask))


def _python_value(value: Any) -> Any:
    try:
        plain = value.as_py() if isinstance(value, pa.Scalar) else value
    except UnicodeDecodeError:
        plain = value.cast(pa.binary()).as_py()
    except (ValueError, OverflowError):  # a time of no year that Python knows, a structure with a name twice
        plain = f"{value.type} {value}"[:200] if pa.types.is_nested(value.type) else f"{value.type} out of range"
    return plain.isoformat() if isinstance(plain, datetime | date) else plain


def _display_value(value: object) -> str:
    text = json.dumps(value, default=str)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
