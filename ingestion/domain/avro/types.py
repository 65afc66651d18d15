"""The column type that holds a type of Avro, for files of a source and for what a table's commits say of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ingestion.domain.column_types import MAX_PRECISION, ArrayOf, ColumnType, MapOf, Plain

_PLAIN = {name: Plain(name) for name in ("boolean", "int", "long", "float", "double", "string")} | {
    "bytes": Plain("binary"),
    "fixed": Plain("binary"),
    "enum": Plain("string"),
}
_LOGICAL = {
    "date": Plain("date"),
    "timestamp-millis": Plain("timestamp"),
    "timestamp-micros": Plain("timestamp"),
    "local-timestamp-millis": Plain("timestamp"),
    "local-timestamp-micros": Plain("timestamp"),
}


class AvroTypes:
    """Reads types one after the other: a later one may name an earlier one.

    `struct` makes a structure of its fields, `other` says what holds a type that has no twin, such as a union of several types.
    """

    def __init__(
        self, struct: Callable[[Mapping[str, ColumnType]], ColumnType], other: Callable[[Any], ColumnType]
    ) -> None:
        self._struct, self._other = struct, other
        self._named: dict[str, ColumnType] = {}

    def type_of(self, avro: Any) -> ColumnType:
        if isinstance(avro, list):
            branches = [branch for branch in avro if branch != "null"]
            return self.type_of(branches[0]) if len(branches) == 1 else self._other(avro)
        if isinstance(avro, str):
            return self._named.get(avro) or _PLAIN.get(avro) or self._other(avro)
        column_type = self._annotated(avro)
        if "name" in avro:
            names = {str(avro["name"]), f"{avro.get('namespace', '')}.{avro['name']}"}
            self._named |= dict.fromkeys(names, column_type)
        return column_type

    def _annotated(self, avro: Mapping[str, Any]) -> ColumnType:
        annotation = avro.get("logicalType")
        if annotation == "decimal" and 0 < avro["precision"] <= MAX_PRECISION:
            return Plain(f"decimal({avro['precision']},{avro.get('scale', 0)})")
        if annotation in _LOGICAL:
            return _LOGICAL[annotation]
        # What else is annotated is handed over by readers as values of their own: a time of day, a UUID.
        return self._other(avro) if annotation is not None else self._unannotated(avro)

    def _unannotated(self, avro: Mapping[str, Any]) -> ColumnType:
        kind = avro["type"]
        if kind == "array":
            return ArrayOf(self.type_of(avro["items"]))
        if kind == "map":
            return MapOf(self.type_of(avro["values"]))
        if kind in ("record", "error"):
            fields = {field["name"]: self.type_of(field["type"]) for field in avro["fields"]}
            return self._struct(fields) if fields else self._other(avro)
        return self.type_of(kind)
