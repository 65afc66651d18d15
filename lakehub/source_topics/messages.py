"""What the bytes of a message mean. One that begins with a zero byte is Avro in Confluent's wire format, which no JSON does; all else is JSON.

A key may also be a plain text. What Python's JSON reader takes and JSON has not, or what no column holds, is refused: NaN, a name that is there twice, a whole number beyond
64 bits.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from math import isfinite
from typing import Any, NoReturn

import fastavro

from lakehub.source_topics import broken
from lakehub.source_topics.broken import BadMessage

MAX_BYTES = 8 * 2**20
"""Of a value or a key that is read."""
MAX_DEPTH = 100
PLAIN_KEY = "message_key"
"""The column of a key that is no structure."""
_HEADER = struct.Struct(">bI")
_LEAST, _MOST = -(2**63), 2**63 - 1
_MOST_DIGITS = 20
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
    return _read_avro(data, schema_of, part) if data[0] == 0 else MessagePart(read_json(data, part))


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


def read_json(data: bytes, part: str = "The value") -> Any:
    """Raises BadMessage."""
    text = _text(data, part)
    try:
        content = json.loads(
            text, object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_constant
        )
    except BadMessage:
        raise
    except RecursionError as problem:
        raise BadMessage(broken.CORRUPT, f"{part} is nested deeper than {MAX_DEPTH}.") from problem
    except ValueError as problem:
        raise BadMessage(broken.CORRUPT, f"{part} is not JSON: {problem}.") from problem
    _check_depth(content, part)
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        name = next(name for name in names if names.count(name) > 1)
        raise BadMessage(broken.FIELD, f"The name {name[:100]!r} is there twice in one object.", name)
    return content


def _whole(text: str) -> int:
    number = int(text) if len(text) <= _MOST_DIGITS else _MOST + 1
    if not _LEAST <= number <= _MOST:
        raise BadMessage(broken.TYPE, f"The whole number {text[:40]} takes more than 64 bits. Write it as a text.")
    return number


def _fraction(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise BadMessage(broken.TYPE, f"The number {text[:40]} is too large.")
    return number


def _constant(text: str) -> NoReturn:
    raise BadMessage(broken.TYPE, f"{text} is not JSON. Write null, or a text.")


def _check_depth(content: Any, part: str) -> None:
    level = [content]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise BadMessage(broken.CORRUPT, f"{part} is nested deeper than {MAX_DEPTH}.")


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
