"""The types of columns by the messages that were seen: those of JSON widen as more is seen, those of Avro are what its schemas say.

An object or a list is a text, JSON: the next message may have other names in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakehub.source_topics.messages import ReadMessage

TEXT, FRACTION, WHOLE = "string", "double", "long"
_TYPES = {bool: "boolean", int: WHOLE, float: FRACTION}
_NUMBERS = {WHOLE, FRACTION}


def json_type(value: Any) -> str:
    """Of the lake."""
    return _TYPES.get(type(value), TEXT)


def common_type(first: str, second: str) -> str:
    """That has the values of both; of values of several kinds each is a text."""
    if first == second:
        return first
    return FRACTION if {first, second} == _NUMBERS else TEXT


@dataclass
class TypesSeen:
    """By column: `json` of the lake, `avro` as the newest schema that has the column says."""

    json: dict[str, str] = field(default_factory=dict)
    avro: dict[str, Any] = field(default_factory=dict)

    def meet(self, message: ReadMessage) -> None:
        avro = message.avro_types
        self.avro |= avro
        for name, value in message.row.items():
            if value is not None and name not in avro:
                self.json[name] = common_type(self.json.get(name, json_type(value)), json_type(value))
