"""What the bytes of a message mean. One that begins with a zero byte is Avro in Confluent's wire format, which no JSON does; all else is JSON.

A key may also be a plain text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any

import fastavro

from lakehub.kernel.json_texts import JsonDefect, UnusableJson, read_json
from lakehub.source_topics import broken
from lakehub.source_topics.broken import BadMessage

MAX_BYTES = 8 * 2**20
"""Of a value or a key that is read."""
PLAIN_KEY = "message_key"
"""The column of a key that is no structure."""
_HEADER = struct.Struct(">bI")
_DEFECTS = {
    JsonDefect.SYNTAX: broken.CORRUPT,
    JsonDefect.REPEATED_NAME: broken.FIELD,
    JsonDefect.NUMBER: broken.TYPE,
}
SchemaOf = Callable[[int], Any]
"""The schema of a number, as fastavro reads by it. Raises BadMessage."""


@dataclass(frozen=True)
class TopicMessage:
    """As it lies in a topic. `at`: aware UTC; None: it has no time."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    at: datetime | None


@dataclass(frozen=True)
class MessagePart:
    """A key or a value. `avro`: the schema that it was written by; None: it was JSON, or text."""

    content: Any
    avro: Any = None

    @property
    def fields(self) -> Mapping[str, Any]:
        """By column."""
        return self.content if isinstance(self.content, dict) else {PLAIN_KEY: self.content}

    @property
    def avro_types(self) -> Mapping[str, Any]:
        """By column, of Avro; empty: it was none."""
        if self.avro is None:
            return {}
        return _field_types(self.avro) if isinstance(self.content, dict) else {PLAIN_KEY: self.avro}


@dataclass(frozen=True)
class ReadMessage:
    """`key` None: it has none. `value` None: it has none, which deletes the row."""

    key: MessagePart | None
    value: MessagePart | None

    @property
    def row(self) -> dict[str, Any]:
        """The fields of the value, and those of the key that the value lacks."""
        return {
            name: value for part in (self.key, self.value) if part is not None for name, value in part.fields.items()
        }

    @property
    def avro_types(self) -> dict[str, Any]:
        return {
            name: type_
            for part in (self.key, self.value)
            if part is not None
            for name, type_ in part.avro_types.items()
        }


def read_message(message: TopicMessage, schema_of: SchemaOf) -> ReadMessage:
    """Raises BadMessage."""
    key = None if message.key is None else _read_key(message.key, schema_of)
    if message.value is None:
        return ReadMessage(key, None)
    value = _read_part(message.value, schema_of, "The value")
    if not isinstance(value.content, dict):
        raise BadMessage(broken.NO_EVENT, f"The value is not an object, but {_kind(value.content)}.")
    return ReadMessage(key, value)


def _read_key(key: bytes, schema_of: SchemaOf) -> MessagePart:
    """A text is a key as it is, also one that looks like a number or a list."""
    if key[:1] in (b"\x00", b"{"):
        return _read_part(key, schema_of, "The key")
    _check_size(key, "The key")
    return MessagePart(_text(key, "The key"))


def _read_part(data: bytes, schema_of: SchemaOf, part: str) -> MessagePart:
    _check_size(data, part)
    if not data:
        raise BadMessage(broken.EMPTY, f"{part} has no bytes.")
    return _read_avro(data, schema_of, part) if data[0] == 0 else MessagePart(_read_json(data, part))


def _check_size(data: bytes, part: str) -> None:
    if len(data) > MAX_BYTES:
        raise BadMessage(broken.OVERSIZED, f"{part} has {len(data):,} bytes; {MAX_BYTES:,} are read.")


def _text(data: bytes, part: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise BadMessage(broken.INVALID_UTF8, f"{part} is not UTF-8, from its byte {problem.start} on.") from None


def _read_avro(data: bytes, schema_of: SchemaOf, part: str) -> MessagePart:
    if len(data) < _HEADER.size:
        raise BadMessage(
            broken.TRUNCATED,
            f"{part} begins as Avro does and has {len(data)} bytes; the header alone has {_HEADER.size}.",
        )
    _, number = _HEADER.unpack_from(data)
    schema = schema_of(number)
    body = BytesIO(data)
    body.seek(_HEADER.size)
    try:
        content: Any = fastavro.schemaless_reader(body, schema, None)
    except UnicodeDecodeError as problem:
        raise BadMessage(broken.INVALID_UTF8, f"{part} has a text that is not UTF-8.") from problem
    except Exception as problem:  # whatever fastavro raises of damaged bytes
        if body.tell() >= len(data):
            raise BadMessage(broken.TRUNCATED, f"{part} ends before schema {number} does.") from problem
        reason = f"{part} is not what schema {number} says: {type(problem).__name__}."
        raise BadMessage(broken.CORRUPT, reason) from problem
    if body.tell() != len(data):
        raise BadMessage(
            broken.TRAILING_BYTES,
            f"{part} goes on for {len(data) - body.tell():,} bytes behind what schema {number} says.",
        )
    return MessagePart(content, schema)


def _read_json(data: bytes, part: str) -> Any:
    """Raises BadMessage."""
    try:
        return read_json(_text(data, part))
    except UnusableJson as problem:
        raise BadMessage(_DEFECTS[problem.defect], f"{part} {problem}.", problem.name[:100]) from problem


def _field_types(schema: Any) -> dict[str, Any]:
    """Of the record that was written: of a union it is the one that has fields."""
    branches = schema if isinstance(schema, list) else [schema]
    record: Any = next(
        (branch for branch in branches if isinstance(branch, dict) and "fields" in branch), {"fields": []}
    )
    return {field["name"]: field["type"] for field in record["fields"]}


def _kind(content: Any) -> str:
    kinds = {
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        type(None): "null",
    }
    return kinds.get(type(content), type(content).__name__)
