"""One column of a chunk in its type of the lake: as a whole where it casts, else value by value; structures field by field.

A value that does not fit is null in the column, and the misfits say of its row where it is and why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf
from ingestion.spark.file_groups.arrow_types import arrow_type, arrow_type_of
from ingestion.spark.loading.casting import (
    CAST_ERRORS,
    UNWRITABLE,
    cast_values,
    python_value,
    sound,
)

Misfits = dict[int, tuple[str, str]]
"""By row: the path within the column, such as `items[].price`, and what is wrong there. The first one of a row stays."""


@dataclass(frozen=True)
class _Place:
    """Where the values come from: `rows[i]` is the row of the i-th."""

    path: str
    rows: Sequence[int]
    misfits: Misfits

    def reject(self, position: int, reason: str, path: str = "") -> None:
        shown = path or self.path
        self.misfits.setdefault(self.rows[position], (shown, f"`{shown}` {reason}"))

    def within(self, path: str, positions: Sequence[int] | None = None) -> _Place:
        rows = self.rows if positions is None else [self.rows[position] for position in positions]
        return _Place(path, rows, self.misfits)


def fit_column(values: Sequence[Any], type_: ColumnType, name: str, misfits: Misfits) -> pa.Array:
    """`values` are Python's or an Arrow array, one a row."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return _fit(values, type_, _Place(name, range(len(values)), misfits))


def _fit(values: Sequence[Any], type_: ColumnType, place: _Place) -> pa.Array:
    match type_:
        case Plain():
            return _fit_plain(values, str(type_), place)
        case StructOf():
            return _fit_structs(values, type_, place)
        case ArrayOf(element):
            lists = _lists_of(values, place)
            inner = _fit(lists.items, element, place.within(f"{place.path}[]", lists.positions))
            return pa.ListArray.from_arrays(lists.offsets, inner, type=arrow_type_of(type_))
        case MapOf(value):
            return _fit_maps(values, value, place)


def _fit_plain(values: Sequence[Any], type_: str, place: _Place) -> pa.Array:
    if not _has_one_type(values, type_):
        return _cast_one_by_one(values, type_, place)
    try:
        return sound(cast_values(values, type_))
    except CAST_ERRORS:
        return _cast_one_by_one(values, type_, place)


def _has_one_type(values: Sequence[Any], type_: str) -> bool:
    """Arrow makes numbers of booleans that stand beside numbers, and fractions of numbers beside fractions.

    For a decimal column nothing is made of them: each number is judged by itself.
    """
    if isinstance(values, pa.Array) or type_.startswith("decimal("):
        return True
    kinds = set(map(type, values)) - {type(None)}
    return len(kinds) <= 1 or (type_ == "double" and kinds == {int, float})


def _cast_one_by_one(values: Sequence[Any], type_: str, place: _Place) -> pa.Array:
    fitted_values: list[object] = []
    for position, value in enumerate(values):
        plain = python_value(value)
        try:
            fitted_values.append(cast_values([plain], type_)[0].as_py())
        except CAST_ERRORS:
            fitted_values.append(None)
            place.reject(position, f"is {_display_value(plain)}, which is no {type_}")
    return pa.array(fitted_values, arrow_type(type_))


def _fit_structs(values: Sequence[Any], type_: StructOf, place: _Place) -> pa.Array:
    if isinstance(values, pa.Array) and pa.types.is_struct(values.type):
        nulls, fields = (
            values.is_null(),
            dict(zip((field.name for field in values.type), values.flatten(), strict=True)),
        )
    else:
        rows = [_of_kind(value, dict, "structure", position, place) for position, value in enumerate(values)]
        nulls = pa.array([row is None for row in rows], pa.bool_())
        names = dict.fromkeys(name for row in rows if row for name in row)
        fields = {name: [None if row is None else row.get(name) for row in rows] for name in names}
    for name in fields.keys() - type_.types.keys():
        _reject_unknown_field(fields[name], place.within(f"{place.path}.{name}"))
    columns = [
        _fit(fields[name], field, place.within(f"{place.path}.{name}"))
        if name in fields
        else pa.nulls(len(nulls), arrow_type_of(field))
        for name, field in type_.fields
    ]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type_of(type_)), mask=nulls)


def _reject_unknown_field(values: Sequence[Any], place: _Place) -> None:
    """Its value would be lost in silence."""
    for position, value in enumerate(values):
        if python_value(value) is not None:
            place.reject(position, "is no field of the source's schema")


@dataclass(frozen=True)
class _Lists:
    """Lists of several rows, one behind the other: `lengths` has None for a null, `positions[i]` is the list of the i-th item."""

    lengths: Sequence[int | None]
    items: Sequence[Any]
    positions: Sequence[int]
    offsets: pa.Array = field(init=False)
    """Where each list begins, and the last one ends, as Arrow has it: null for a list that is null."""

    def __post_init__(self) -> None:
        begins = accumulate((length or 0 for length in self.lengths), initial=0)
        kept = [None if length is None else begin for begin, length in zip(begins, self.lengths, strict=False)]
        object.__setattr__(self, "offsets", pa.array([*kept, len(self.items)], pa.int32()))


def _lists_of(values: Sequence[Any], place: _Place) -> _Lists:
    if isinstance(values, pa.Array) and _is_list(values.type):
        lengths = pc.list_value_length(values).to_pylist()
        # Not Arrow's own indices of the parents: they count what may lie behind a list that is null, which is left out here.
        positions = [position for position, length in enumerate(lengths) for _ in range(length or 0)]
        return _Lists(lengths, pc.list_flatten(values), positions)
    rows = [_of_kind(value, list, "list", position, place) for position, value in enumerate(values)]
    return _in_a_row(rows)


def _in_a_row(rows: Sequence[Sequence[Any] | None]) -> _Lists:
    items = [item for row in rows if row for item in row]
    positions = [position for position, row in enumerate(rows) for _ in row or ()]
    return _Lists([None if row is None else len(row) for row in rows], items, positions)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def _fit_maps(values: Sequence[Any], value_type: ColumnType, place: _Place) -> pa.Array:
    """The entries of a map in the order of their keys, so that a map that is the same is stored the same."""
    keys, lists = _entries_of(values, place)
    order = sorted(range(len(keys)), key=lambda entry: (lists.positions[entry], keys[entry]))
    for entry, following in pairwise(order):
        if (lists.positions[entry], keys[entry]) == (lists.positions[following], keys[following]):
            place.reject(lists.positions[entry], "has a key twice")
    fitted = _fit(lists.items, value_type, place.within(f"{place.path}[]", lists.positions))
    sorted_keys = pa.array([keys[entry] for entry in order], pa.string())
    return pa.MapArray.from_arrays(lists.offsets, sorted_keys, fitted.take(pa.array(order, pa.int64())))


def _entries_of(values: Sequence[Any], place: _Place) -> tuple[list[str], _Lists]:
    """The keys, and the values as lists. A key that is no text is a misfit."""
    if isinstance(values, pa.Array) and pa.types.is_map(values.type):
        pairs = _lists_of(_as_lists_of_entries(values), place)
        arrow_keys, items = pairs.items.flatten()  # type: ignore[attr-defined]  # a StructArray
        keys, lists = [python_value(key) for key in arrow_keys], _Lists(pairs.lengths, items, pairs.positions)
    else:
        maps = [_of_kind(value, dict, "map", position, place) for position, value in enumerate(values)]
        lists = _in_a_row([None if each is None else list(each.values()) for each in maps])
        keys = [key for each in maps if each for key in each]
    for entry, key in enumerate(keys):
        if not isinstance(key, str) or not _is_utf8(key):
            place.reject(lists.positions[entry], "has a key that is no text")
            keys[entry] = ""
    return keys, lists


def _as_lists_of_entries(maps: pa.MapArray) -> pa.ListArray:
    return maps.cast(pa.list_(pa.struct([("key", maps.type.key_type), ("value", maps.type.item_type)])))


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _of_kind(value: Any, kind: type, shown: str, position: int, place: _Place) -> Any:
    plain = python_value(value)
    if plain is None or isinstance(plain, kind):
        return plain
    place.reject(position, f"is {_display_value(plain)}, which is no {shown}")
    return None


def _display_value(value: object) -> str:
    try:
        text = json.dumps(value, default=str)
    except UNWRITABLE:
        text = "a value that JSON cannot hold"
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
