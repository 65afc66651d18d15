"""Values of messages as the columns of the lake hold them. What cannot be one is refused by name; nothing is rounded or cut."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf
from lakehub.source_topics.broken import FIELD, TYPE, BadMessage

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_LARGEST_EXACT = 2**53
_BOUNDS = {"int": 2**31, "long": 2**63}


def lake_value(value: Any, type_: ColumnType, name: str) -> Any:
    """Raises BadMessage."""
    if value is None:
        return None
    match type_:
        case StructOf():
            return _struct(value, type_, name)
        case ArrayOf(element) if isinstance(value, list):
            return [lake_value(inner, element, f"{name}[]") for inner in value]
        case MapOf(inner_type) if isinstance(value, dict):
            return {key: lake_value(inner, inner_type, f"{name}[{key!r:.40}]") for key, inner in value.items()}
        case Plain():
            return _plain(value, type_, name)
    raise _unfit(value, type_, name)


def key_value(text: str, type_: ColumnType, name: str) -> Any:
    """Of a key that is a plain text. Raises BadMessage."""
    kind = str(type_)
    try:
        if kind in _BOUNDS and _WHOLE.fullmatch(text):
            return lake_value(int(text), type_, name)
        if kind.startswith("decimal"):
            return lake_value(Decimal(text), type_, name)
        if kind == "date":
            return date.fromisoformat(text)
    except (ValueError, InvalidOperation) as problem:
        raise _unfit(text, type_, name) from problem
    return lake_value(text, type_, name)


def _struct(value: Any, type_: StructOf, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unfit(value, type_, name)
    fields = type_.types
    for inner in value:
        if inner not in fields and value[inner] is not None:
            raise BadMessage(FIELD, f"`{name}` has the field {inner[:100]!r}, and the lake has no place for it.", name)
    return {inner: lake_value(value.get(inner), kind, f"{name}.{inner}") for inner, kind in fields.items()}


def _plain(value: Any, type_: Plain, name: str) -> Any:
    if type_.decimal is not None:
        return _decimal(value, type_, name)
    match type_.name, value:
        case "string", _:
            return value if isinstance(value, str) else _as_text(value)
        case "boolean", bool():
            return value
        case (("int" | "long"), bool()):
            raise _unfit(value, type_, name)
        case (("int" | "long"), int()) if -_BOUNDS[type_.name] <= value < _BOUNDS[type_.name]:
            return value
        case (("int" | "long"), float()) if value.is_integer() and abs(value) <= _LARGEST_EXACT:
            return lake_value(int(value), type_, name)
        case (("float" | "double"), float()):
            return value
        case (("float" | "double"), int()) if not isinstance(value, bool) and abs(value) <= _LARGEST_EXACT:
            return float(value)
        case "binary", bytes():
            return value
        case "date", date() if not isinstance(value, datetime):
            return value
        case "timestamp", datetime():
            return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    raise _unfit(value, type_, name)


def _decimal(value: Any, type_: Plain, name: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise _unfit(value, type_, name)
    assert type_.decimal is not None
    precision, scale = type_.decimal
    number = Decimal(value)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > scale or number.copy_abs() >= Decimal(10) ** (precision - scale):
        raise _unfit(value, type_, name)
    return number


def _as_text(value: Any) -> str:
    """Objects, lists, numbers and truth values as JSON; what Avro has besides as its usual text."""
    if isinstance(value, dict | list | bool | int | float):
        return json.dumps(value, ensure_ascii=False, default=_in_json)
    return str(_in_json(value))


def _in_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _unfit(value: Any, type_: ColumnType, name: str) -> BadMessage:
    shown = value if isinstance(value, Mapping) else repr(value)
    return BadMessage(TYPE, f"`{name}` is {str(shown)[:200]}, and the column in the lake is {type_}.", name)
