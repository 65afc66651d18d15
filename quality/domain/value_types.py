"""What a node of an expression can be worth, so that nonsense is refused before anything runs."""

from __future__ import annotations

from enum import StrEnum


class ValueType(StrEnum):
    """COUNT is a NUMBER of rows or keys: one divided by another is a RATIO."""

    COUNT = "count"
    NUMBER = "number"
    RATIO = "ratio"
    DURATION = "duration"
    BOOLEAN = "boolean"
    TEXT = "text"

    @property
    def is_numeric(self) -> bool:
        return self in (ValueType.COUNT, ValueType.NUMBER)


class ValueTypeError(ValueError):
    """An operator was given kinds that it cannot work on; says what would do."""
