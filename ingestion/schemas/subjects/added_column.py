"""A column that is added to a schema by its name and its type in words of the lake, so that nobody needs to know how Avro writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingestion.domain.column_types import ColumnType, Plain, UnknownType, parse_type
from ingestion.heatpipe.event_schema import avro_of_type, row_schema
from ingestion.schemas.avro_text import parsed
from ingestion.schemas.subjects.table_columns import is_change_event
from lakehub.kernel.errors import Refused

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_INTEGERS = {"int": 31, "long": 63}
"""By type how many bits its values have."""


@dataclass(frozen=True)
class NewColumn:
    """`default`: as it is typed; empty: none, or null where it may be null."""

    name: str
    type: str
    is_nullable: bool = True
    doc: str = ""
    default: str = ""


def with_column(text: str, column: NewColumn) -> str:
    """The schema with one more column at the end, laid out for people. Raises Refused, which names the field: name, type or default."""
    schema = parsed(text)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise Refused.for_fields({"name": "Only a record has columns: write the schema as one."})
    fields = (row_schema(schema) if is_change_event(schema) else schema)["fields"]
    problems = {}
    if not _NAME.fullmatch(column.name):
        problems["name"] = f"{column.name[:80]!r} is not a name: write letters, digits and _, and no digit first."
    elif any(field["name"] == column.name for field in fields):
        problems["name"] = f"There is a column `{column.name}` already."
    try:
        fields.append(_field(column, str(schema.get("name", "Row"))))
    except Refused as refused:
        problems |= refused.fields
    if problems:
        raise Refused.for_fields(problems)
    return json.dumps(schema, indent=2, ensure_ascii=False)


def _field(column: NewColumn, record: str) -> Mapping[str, Any]:
    try:
        type_ = parse_type(column.type)
    except UnknownType as problem:
        raise Refused.for_fields({"type": str(problem)}) from problem
    avro = avro_of_type(type_, f"{record.rpartition('.')[2]}_{column.name}")
    field: dict[str, Any] = {"name": column.name, "type": avro}
    if column.default:
        field["default"] = _default(type_, column.default)
    if column.is_nullable:
        # Avro takes a default for one of the first branch.
        field["type"] = [avro, "null"] if column.default else ["null", avro]
        field.setdefault("default", None)
    return field | ({"doc": column.doc} if column.doc else {})


def _default(type_: ColumnType, text: str) -> Any:
    if type_ == Plain("string"):
        return text
    name = str(type_)
    if name not in ("boolean", "int", "long", "float", "double"):
        raise Refused.for_fields(
            {"default": f"Write the default of a column of type {name} into the JSON, as Avro has it."}
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not _fits(name, value):
        example = {"boolean": "true", "int": "0", "long": "0"}.get(name, "0.5")
        raise Refused.for_fields(
            {"default": f"{text[:40]!r} is not a value of type {name}. Write for example {example}."}
        )
    return value


def _fits(name: str, value: Any) -> bool:
    if name == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if name in _INTEGERS:
        bits = _INTEGERS[name]
        return isinstance(value, int) and -(2**bits) <= value < 2**bits
    return isinstance(value, int | float) and abs(value) < float("inf")
