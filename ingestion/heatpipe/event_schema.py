"""The Avro schema of a dataset's change events: the metadata of DBEvents, and the row, in which every column may be null.

An event may carry some columns only. Avro has no absent fields, so `changelog_columns` names those that it carries; none named: all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf, parse_type
from ingestion.domain.schema import Schema

NAMESPACE = "lakehub.changelog"
AvroSchema = dict[str, Any]
_PRIMITIVE = frozenset(("boolean", "int", "long", "float", "double", "bytes", "string"))
_CONTAINERS = frozenset(("record", "array", "map"))
_MAX_DEPTH = 64
_MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
_REFERENCE_KEY = ["null", "long", "bytes"]
_PLAIN: Mapping[str, Any] = {
    **{name: name for name in ("boolean", "int", "long", "float", "double", "string")},
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
}


def event_schema(
    subject: str,
    row: Schema,
    aliases: Mapping[str, Sequence[str]] | None = None,
    docs: Mapping[str, str] | None = None,
) -> AvroSchema:
    """`subject` names the dataset, and is kept as it is in the property `subject`. `row`: the columns of the table, with names that Avro takes.
    `aliases`: by column the names that it had before. `docs`: by column what it is, for people."""
    return {
        "type": "record",
        "name": "Event",
        "namespace": NAMESPACE,
        "subject": subject,
        "fields": [
            {"name": "metadata", "type": METADATA},
            {
                "name": "row",
                "type": {"type": "record", "name": "Row", "fields": list(_fields(row, aliases or {}, docs or {}))},
            },
        ],
    }


def row_schema(event: AvroSchema) -> AvroSchema:
    """The record of the row in an event's schema."""
    return next(field["type"] for field in event["fields"] if field["name"] == "row")


def _fields(row: Schema, aliases: Mapping[str, Sequence[str]], docs: Mapping[str, str]) -> Iterable[AvroSchema]:
    for column in row:
        avro = avro_of_type(parse_type(column.type), f"Row_{column.name}")
        field = {"name": column.name, "type": ["null", avro], "default": None}
        notes = {"aliases": [*aliases.get(column.name, ())], "doc": docs.get(column.name)}
        yield field | {name: note for name, note in notes.items() if note}


def is_plain(row: Any, depth: int = 0) -> bool:
    """Is it a record whose types all hold values: none holds itself by its name, and none is null alone or has no fields, of which a short message may have millions?"""
    if depth > _MAX_DEPTH:
        return False
    if isinstance(row, list):
        values = [branch for branch in row if branch != "null"]
        return bool(values) and all(is_plain(branch, depth) for branch in values)
    if isinstance(row, str):
        return row in _PRIMITIVE
    inner = [field["type"] for field in row.get("fields", ())] + [
        row[part] for part in ("items", "values") if part in row
    ]
    takes_bytes = row["type"] != "record" or inner or depth == 0
    return (
        row["type"] in _CONTAINERS | _PRIMITIVE
        and bool(takes_bytes)
        and all(is_plain(each, depth + 1) for each in inner)
    )


def avro_of_type(type_: ColumnType, path: str) -> Any:
    """`path` names the structures in it: in one schema each name stands for one structure."""
    match type_:
        case Plain(name):
            return _avro_of_plain(type_) if type_.decimal else _PLAIN[name]
        case ArrayOf(element):
            return {"type": "array", "items": ["null", avro_of_type(element, f"{path}_item")]}
        case MapOf(value):
            return {"type": "map", "values": ["null", avro_of_type(value, f"{path}_value")]}
        case StructOf(fields):
            inner = [
                {"name": name, "type": ["null", avro_of_type(field, f"{path}_{name}")], "default": None}
                for name, field in fields
            ]
            return {"type": "record", "name": path, "fields": inner}


def _avro_of_plain(type_: Plain) -> Any:
    assert type_.decimal is not None
    precision, scale = type_.decimal
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _metadata() -> AvroSchema:
    changelog_column = {
        "type": "record",
        "name": "ChangelogColumn",
        "fields": [
            {"name": "name", "type": "string", "doc": "Of the column of the source that changed; empty: the row."},
            {"name": "ref_key", "type": _REFERENCE_KEY, "default": None},
            {"name": "changed_fields", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    }
    fields: list[tuple[str, Any, Any, str]] = [
        ("row_key", "string", None, "The values of the key columns as a JSON list of texts."),
        ("reference_key", _REFERENCE_KEY, None, "Decides between two changes of one row: the greater wins."),
        ("changelog_columns", {"type": "array", "items": changelog_column}, [], "What the event carries; empty: all."),
        ("source", "string", None, "Where the change was made, for example a server and a table."),
        ("schematised_at", _MILLIS, None, "When the event was encoded."),
        ("source_committed_at", ["null", _MILLIS], None, "Null: the source does not say."),
        ("is_deleted", "boolean", False, ""),
        ("force_update", "boolean", False, "The change wins whatever its reference key is."),
        ("error_exception", ["null", "string"], None, "Of an event that was in the error table: what was wrong."),
        ("error_source_data", ["null", "bytes"], None, "And the message as it was."),
        ("data_center", "string", None, "Where it was encoded."),
        ("schema_version", "int", None, "Of the dataset's schema, which the event was encoded by."),
    ]
    return {"type": "record", "name": "Metadata", "fields": [_metadata_field(*field) for field in fields]}


def _metadata_field(name: str, type_: Any, default: Any, doc: str) -> AvroSchema:
    field: AvroSchema = {"name": name, "type": type_} | ({"doc": doc} if doc else {})
    has_default = default is not None or (isinstance(type_, list) and type_[0] == "null")
    return field | ({"default": default} if has_default else {})


METADATA = _metadata()
