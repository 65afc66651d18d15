"""The columns of a schema that people mean: in a change event those of the row, in other schemas all fields."""

from __future__ import annotations

from typing import Any

from ingestion.heatpipe.event_schema import row_schema
from ingestion.heatpipe.subject_schema import SubjectSchema

ROW_PREFIX = "row."


def is_change_event(schema: Any) -> bool:
    """Its columns are those of the table, below `row.`"""
    return _is_record(schema) and SubjectSchema("", 0, 0, schema).is_event


def column_count(schema: Any) -> int:
    """Without the fields of structures; 0 where a schema is no record."""
    if not _is_record(schema):
        return 0
    return len(row_schema(schema)["fields"] if is_change_event(schema) else schema["fields"])


def _is_record(schema: Any) -> bool:
    """Other types may have properties of any name."""
    return isinstance(schema, dict) and schema.get("type") in ("record", "error")
