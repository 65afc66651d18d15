"""A version of a dataset's schema, as messages name it by its id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastavro import parse_schema

from ingestion.domain.avro.types import AvroTypes
from ingestion.domain.column_types import STRING, ColumnType, struct_in_lake
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.event_schema import METADATA, AvroSchema, is_plain, row_schema
from ingestion.heatpipe.plain_writing import WriteValue, column_writers
from ingestion.heatpipe.value_checks import Check, check_of


@dataclass(frozen=True)
class SubjectSchema:
    """`schema_id` is known to all subjects of a registry, `version` counts within the subject. `avro`: of the whole event (`event_schema`)."""

    subject: str
    version: int
    schema_id: int
    avro: AvroSchema

    @cached_property
    def parsed(self) -> Any:
        """Raises fastavro's SchemaParseException."""
        return parse_schema(self.avro)

    @cached_property
    def is_event(self) -> bool:
        """Are its messages change events? Others are not read: a message of a schema that holds itself may end the process that reads it."""
        fields = self.avro.get("fields", []) if isinstance(self.avro, dict) else []
        types = {field["name"]: field["type"] for field in fields}
        return types.keys() == {"metadata", "row"} and types["metadata"] == METADATA and is_plain(types["row"])

    @cached_property
    def has_nullable_columns(self) -> bool:
        """Each may be null, and has one type besides, as `event_schema` has them: others are read, and nothing is written by them."""
        types = [field["type"] for field in row_schema(self.avro)["fields"]]
        return all(isinstance(each, list) and len(each) == 2 and each[0] == "null" for each in types)

    @cached_property
    def checks(self) -> Mapping[str, Check | None]:
        """By column, in order."""
        return {field["name"]: check_of(field["type"]) for field in row_schema(self.avro)["fields"]}

    @cached_property
    def writers(self) -> tuple[tuple[str, WriteValue], ...]:
        return column_writers(row_schema(self.avro)["fields"])

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.fields)

    @property
    def aliases(self) -> dict[str, tuple[str, ...]]:
        """By column that has had other names, which."""
        fields = row_schema(self.avro)["fields"]
        return {field["name"]: tuple(field["aliases"]) for field in fields if field.get("aliases")}

    @property
    def docs(self) -> dict[str, str]:
        """By column that says what it is."""
        fields = row_schema(self.avro)["fields"]
        return {field["name"]: field["doc"] for field in fields if isinstance(field.get("doc"), str)}

    @cached_property
    def row_columns(self) -> Schema:
        """Of the table whose rows it describes."""
        types = AvroTypes(struct_in_lake, _as_text)
        fields = row_schema(self.avro)["fields"]
        return Schema(tuple(SchemaColumn(field["name"], str(types.type_of(field["type"]))) for field in fields))

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """A schema for each column alone, to find the one that a value does not fit."""
        fields = row_schema(self.avro)["fields"]
        return {field["name"]: parse_schema({"type": "record", "name": "Field", "fields": [field]}) for field in fields}


def _as_text(avro: Any) -> ColumnType:
    return STRING
