"""The column types of JSON values: what they have in common, met value by value."""

from __future__ import annotations

from collections.abc import Mapping
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

MAX_NODES = MAX_DEPTH * MAX_FIELDS
"""Of one column: no type of the lake has more, so what has more becomes text anyway."""
MAX_NODES_OF_FILE = 10 * MAX_NODES
"""Of all columns together: a node takes some hundred bytes of memory, and as few as five of the file."""
_NUMBERS = {int, float}
_PLAIN_TYPES = {bool: Plain("boolean"), int: Plain("long"), float: Plain("double")}


class JsonTypes:
    """The columns of a file."""

    def __init__(self) -> None:
        self._columns: dict[str, JsonType] = {}
        self.nodes = 0
        """How many places are remembered, in all columns."""

    def meet(self, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = JsonType()
                self.nodes += 1
            self.nodes += column.meet(value)
            if self.nodes > MAX_NODES_OF_FILE:
                self.nodes += column.become_text()

    def column_types(self) -> dict[str, ColumnType]:
        return {name: column.column_type() for name, column in self._columns.items()}


class JsonType:
    """What is known of the values at one place. Objects are structures, lists arrays; what nothing is known of is text.

    What will be text in any case is remembered as that, without what is inside it: a file may have a new name in each object.
    """

    __slots__ = ("_depth", "_element", "_fields", "_is_text", "_kind", "nodes")

    def __init__(self, depth: int = 1) -> None:
        self.nodes = 1
        """Of this place and all that are inside it."""
        self._depth = depth
        self._kind: type | None = None
        self._is_text = False
        self._fields: dict[str, JsonType] = {}
        self._element: JsonType | None = None

    def meet(self, value: Any) -> int:
        """By how many nodes it has grown; less than 0 where it was found to be text."""
        before = self.nodes
        if value is None or self._is_text:
            return 0
        if not self._fits(type(value)):
            return self.become_text()
        if isinstance(value, dict):
            self._meet_fields(value)
        elif isinstance(value, list):
            self._meet_elements(value)
        return self.nodes - before

    def become_text(self) -> int:
        """For good. By how many nodes it has grown."""
        before, self.nodes = self.nodes, 1
        self._is_text, self._fields, self._element = True, {}, None
        return self.nodes - before

    def column_type(self) -> ColumnType:
        """Text where the values are of several kinds: each is JSON then."""
        if self._kind is dict and not self._is_text:
            return struct_in_lake({name: field.column_type() for name, field in self._fields.items()})
        if self._element is not None:
            return ArrayOf(self._element.column_type())
        return STRING if self._is_text or self._kind is None else _PLAIN_TYPES.get(self._kind, STRING)

    def _fits(self, kind: type) -> bool:
        """False: what is here is text, whatever comes. Whole numbers and fractions are one kind."""
        if kind in (dict, list) and self._depth >= MAX_DEPTH:
            return False
        if self._kind in _NUMBERS and kind in _NUMBERS:
            self._kind = self._kind if self._kind is float else kind
            return True
        self._kind = self._kind or kind
        return self._kind is kind and kind is not str

    def _meet_fields(self, value: dict[str, Any]) -> None:
        for name, inner in value.items():
            field = self._fields.get(name)
            if field is None:
                field = self._fields[name] = JsonType(self._depth + 1)
                self.nodes += 1
            self.nodes += field.meet(inner)
            if len(self._fields) > MAX_FIELDS or self.nodes > MAX_NODES:
                self.become_text()
                return

    def _meet_elements(self, values: list[Any]) -> None:
        if self._element is None:
            self._element = JsonType(self._depth + 1)
            self.nodes += 1
        for inner in values:
            self.nodes += self._element.meet(inner)
        if self.nodes > MAX_NODES:
            self.become_text()
