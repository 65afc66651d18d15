"""The key of the last row that was read, as plain JSON that keeps its types: after it the next chunk begins, in whatever process."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

EncodedKey = list[list[str]]
"""Of each value its type and its text."""


def encode_key(key: Sequence[Any]) -> EncodedKey:
    """Of values that the driver hands over for columns that may be keys."""
    return [[type(value).__name__, _text(value)] for value in key]


def decode_key(encoded: Sequence[Sequence[str]]) -> tuple[Any, ...]:
    return tuple(_DECODERS[name](text) for name, text in encoded)


def _text(value: Any) -> str:
    match value:
        case bytes():
            return b64encode(value).decode()
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return str(value // timedelta(microseconds=1))
        case float():
            return value.hex()
    return str(value)


_DECODERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "str": str,
    "bytes": b64decode,
    "float": float.fromhex,
    "Decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "timedelta": lambda text: timedelta(microseconds=int(text)),
}
