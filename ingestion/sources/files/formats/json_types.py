"""The column types of JSON values: what they have in common, met value by value."""

from __future__ import annotations

from typing import Any

from ingestion.domain.column_types import (
    MAX_DEPTH,
    MAX_FIELDS,
    STRING,
    ArrayOf,
    ColumnType,
    Plain,
    struct_in_lake,
)


class JsonType:
    """What is known of the values at one place. Objects are structures, lists arrays; what nothing is known of is text."""

    def __init__(self, depth: int = 1) -> None:
        self._depth = depth
        self._kinds: set[type] = set()
        self._fields: dict[str, JsonType] = {}
        self._element: JsonType | None = None

    def meet(self, value: Any) -> None:
        if value is None:
            return
        self._kinds.add(type(value))
        if self._depth > MAX_DEPTH:  # all of it becomes text, whatever is inside
            return
        if isinstance(value, dict) and len(self._fields) <= MAX_FIELDS:
            for name, inner in value.items():
                self._field(name).meet(inner)
        elif isinstance(value, list):
            self._element = self._element or JsonType(self._depth + 1)
            for inner in value:
                self._element.meet(inner)

    def column_type(self) -> ColumnType:
        """Text where the values are of several kinds: each is JSON then."""
        if self._kinds == {dict}:
            return struct_in_lake({name: field.column_type() for name, field in self._fields.items()})
        if self._kinds == {list} and self._element is not None:
            return ArrayOf(self._element.column_type())
        if self._kinds == {bool}:
            return Plain("boolean")
        if self._kinds == {int}:
            return Plain("long")
        return Plain("double") if self._kinds and self._kinds <= {int, float} else STRING

    def _field(self, name: str) -> JsonType:
        if name not in self._fields:
            self._fields[name] = JsonType(self._depth + 1)
        return self._fields[name]
