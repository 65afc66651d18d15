"""A row of a source as JSON, whatever its values are: nothing about a row may end the batch that it came with."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from ingestion.heatpipe.unencoded_row import BYTES_NAME
from ingestion.sources import Chunk
from ingestion.spark.loading.casting import UNWRITABLE, python_value, with_texts


def raw_row_json(chunk: Chunk, row: int) -> str:
    """A value that JSON cannot hold is there by the name of its type."""
    values = {name: _told_from_bytes(python_value(column[row])) for name, column in chunk.columns.items()}
    try:
        return json_of_row(values)
    except UNWRITABLE:
        return json_of_row({name: _writable(value) for name, value in values.items()})


def _told_from_bytes(value: Any) -> Any:
    """A structure of the source that looks as bytes do is written with a list around its value."""
    return {BYTES_NAME: [value[BYTES_NAME]]} if isinstance(value, dict) and set(value) == {BYTES_NAME} else value


def json_of_row(values: Mapping[str, Any]) -> str:
    """Times of day and lengths of time are written as they are stored in a text column."""
    return json.dumps(values, default=_json_value, sort_keys=True)


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return {BYTES_NAME: b64encode(value).decode()}
    (text,) = with_texts([value])
    return text if isinstance(text, str) else str(value)


def _writable(value: Any) -> Any:
    try:
        json_of_row({"": value})
    except UNWRITABLE:
        return f"a {type(value).__name__} that JSON cannot hold"
    return value
