"""What columns of the lake a cell fills, of which types: `<column>__<field>` for each field of its body, and `<column>__ref_key`.

Each lake column belongs to one column of the cells, which its name says: what stands before the first two underscores. A cell replaces the whole
body that was before it, so a field that it lacks is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lakehub.kernel.cells.bodies import Body, BrokenBody
from lakehub.kernel.lake_names import LAKE_NAME_RULE, names_unfit_for_the_lake

SEPARATOR = "__"
REF_KEY_FIELD = "ref_key"
MAX_COLUMNS = 2_000
"""Of a dataset: bodies whose names are values, such as ids, would make ever more."""
_WIDER = {("int", "long"), ("int", "double")}
"""Every value of the one is a value of the other."""
_INT, _EXACT_IN_DOUBLE = 2**31, 2**53
_AS_TEXT = "Keep the column as JSON text: write `?text={column}` behind the table in the feed."


def column_prefix(column: str) -> str:
    return f"{column}{SEPARATOR}"


def is_column_of(lake_column: str, column: str) -> bool:
    """Does it hold something of the cells of `column`?"""
    return lake_column == column or lake_column.startswith(column_prefix(column))


def check_column_name(column: str) -> None:
    """Raises BrokenBody for one that no column of the lake can be named after."""
    if SEPARATOR in column or column.endswith("_") or names_unfit_for_the_lake([column]):
        raise BrokenBody(
            "field",
            f"The cell is of the column {column!r:.80}, which columns of the lake cannot be named after: {LAKE_NAME_RULE}. "
            f"Besides, it has no `{SEPARATOR}` and does not end with `_`. Write the cells under another name.",
        )


def fields_of(column: str, body: Body | None, ref_key: int, *, as_text: bool = False) -> dict[str, Any]:
    """By lake column the value: of a body that is null the reference key alone. `as_text`: the body is kept as JSON, in a column of its name. Raises BrokenBody."""
    ref_column = column_prefix(column) + REF_KEY_FIELD
    if as_text:
        return {ref_column: ref_key, column: None if body is None else json_text(body)}
    if body is not None and REF_KEY_FIELD in body:
        reason = f"The body has a field `{REF_KEY_FIELD}`, and `{ref_column}` is the reference key of the cell."
        raise BrokenBody("field", f"{reason} {_AS_TEXT.format(column=column)}", REF_KEY_FIELD)
    fields = {column_prefix(column) + name: _value(each) for name, each in (body or {}).items()}
    return {ref_column: ref_key, **fields}


def _value(value: Any) -> Any:
    return json_text(value) if isinstance(value, dict | list) else value


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def type_of(name: str, value: Any) -> str | None:
    """None: a null says nothing of its type."""
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            is_key = name.endswith(SEPARATOR + REF_KEY_FIELD)
            return "int" if -_INT <= value < _INT and not is_key else "long"
        case float():
            return "double"
    return "string"


def wider_type(type_: str, other: str) -> str | None:
    """The type that has the values of both; None: there is none."""
    if type_ == other or (other, type_) in _WIDER:
        return type_
    return other if (type_, other) in _WIDER else None


def needed_types(known: Mapping[str, str], column: str, fields: Mapping[str, Any]) -> Mapping[str, str]:
    """Those of `known`, with what the fields of a cell need besides, or wider. Raises BrokenBody where a field has no place."""
    if all(value is None or (name in known and _is_exact(known[name], value)) for name, value in fields.items()):
        return known
    types = dict(known)
    for name, value in fields.items():
        type_ = type_of(name, value)
        if type_ is None:
            continue
        if name not in types:
            _check_new(types, column, name)
            types[name] = type_
        elif _is_exact(types[name], value):
            continue
        elif (wider := wider_type(types[name], type_)) is not None and _is_exact(wider, value):
            types[name] = wider
        else:
            raise _conflict(column, name, types[name], value)
    return types


def _is_exact(type_: str, value: Any) -> bool:
    """Can a column of this type hold the value as it is?"""
    if type_ == "double" and type(value) is int:
        return abs(value) <= _EXACT_IN_DOUBLE
    return type_of("", value) in (type_, "int" if type_ == "long" else type_)


def _check_new(types: Mapping[str, str], column: str, name: str) -> None:
    unfit = names_unfit_for_the_lake([*types, name])
    if name in unfit:
        reason = f"The lake cannot hold the field of the column `{column}` as `{name:.80}`: {LAKE_NAME_RULE}."
        raise BrokenBody("field", f"{reason} {_AS_TEXT.format(column=column)}", name)
    if len(types) >= MAX_COLUMNS:
        reason = f"The dataset has {MAX_COLUMNS:,} columns, and no place for `{name:.80}`."
        raise BrokenBody("field", f"{reason} {_AS_TEXT.format(column=column)}", name)


def _conflict(column: str, name: str, type_: str, value: Any) -> BrokenBody:
    reason = f"`{name}` is {value!r:.80}, and its column has the type {type_}."
    return BrokenBody("type", f"{reason} Write a new cell with another value. {_AS_TEXT.format(column=column)}", name)


def read_values(types: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """As their columns have them: whole numbers in a column of others are such, too."""
    return {name: _in_type(types.get(name, ""), value) for name, value in fields.items() if name in types}


def _in_type(type_: str, value: Any) -> Any:
    return float(value) if type_ == "double" and type(value) is int else value


def lake_columns_of(columns: Iterable[str], column: str) -> tuple[str, ...]:
    """Those that the cells of `column` fill."""
    return tuple(name for name in columns if is_column_of(name, column))
