"""Keys as bytes: the same key gives the same bytes on every engine, and two different keys never do.

A key of several columns is written column by column, each as its length in bytes, a colon, its text and a comma;
a null is `~,` and so differs from every text: `("UA", 1545, None)` is `2:UA,4:1545,~,`. How a value is written:

    boolean          true, false
    integer          1545, -3; whatever its width
    decimal          1.5, 2; without an exponent or zeros at the end, so that 2.00 is 2
    date             2013-01-01
    timestamp        2013-01-01T10:00:00.000000Z; in UTC, and one without a zone is UTC
    text             as it is, in UTF-8
    bytes            hexadecimal, in lower case

A type is not part of it: what is written alike is alike, so that a date column meets its text in another store. Numbers
of floating point are no keys (`UnsupportedKeyType`): engines write them differently.

A key is hashed by XXH64 with seed 42, which is `xxhash64(text)` of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import repeat
from uuid import UUID

import numpy as np
import numpy.typing as npt
from xxhash import xxh64_intdigest

SEED = 42
NULL_PART = "~,"
_PART = re.compile(rb"(\d+):|~,")

Hashes = npt.NDArray[np.uint64]


class UnsupportedKeyType(ValueError):
    """A column cannot be part of a key; says which, its type, and the remedy."""

    def __init__(self, column: str, kind: str) -> None:
        super().__init__(
            f"`{column}` cannot be part of a key: it is {kind}. Choose columns of text, whole numbers, decimals, dates or timestamps."
        )


def encode_key(values: Iterable[object], columns: Sequence[str] = ()) -> bytes:
    """The bytes of one key. Raises UnsupportedKeyType; `columns` are the names that it says."""
    return "".join(
        _encode_part(value, columns[place] if columns else str(place + 1)) for place, value in enumerate(values)
    ).encode()


def decode_key(key: bytes) -> tuple[str | None, ...]:
    """The texts of a key's columns, for people. Raises ValueError for bytes that are no key."""
    parts: list[str | None] = []
    at = 0
    while at < len(key):
        match = _PART.match(key, at)
        if match is None:
            raise ValueError(f"{key!r} is not the bytes of a key: a length or ~ is wanted at {at}.")
        at = match.end()
        if match[1] is None:
            parts.append(None)
            continue
        end = at + int(match[1])
        if key[end : end + 1] != b",":
            raise ValueError(f"{key!r} is not the bytes of a key: a comma is wanted at {end}.")
        parts.append(key[at:end].decode())
        at = end + 1
    return tuple(parts)


def _encode_part(value: object, column: str) -> str:
    if value is None:
        return NULL_PART
    text = _format_value(value)
    if text is None:
        raise UnsupportedKeyType(column, type(value).__name__)
    return f"{len(text.encode())}:{text},"


def _format_value(value: object) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | UUID():
            return str(value)
        case datetime():
            instant = value.astimezone(UTC) if value.tzinfo else value
            return f"{instant.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
        case date():
            return value.isoformat()
        case Decimal() if value.is_finite():
            return f"{value.normalize():f}" if value else "0"
        case bytes() | bytearray() | memoryview():
            return value.hex()
        case _:
            return None


def hash_keys(keys: Sequence[bytes]) -> Hashes:
    """XXH64 of each key."""
    return np.fromiter(map(xxh64_intdigest, keys, repeat(SEED)), np.uint64, len(keys))


def in_sample(hashes: Hashes, share: float) -> npt.NDArray[np.bool_]:
    """Which keys belong to a sample of `share` of all: the same on both sides, because only the key decides.

    The upper half of the hash as a fraction is below the share.
    """
    return (hashes >> np.uint64(32)) < np.uint64(sample_bound(share))


def sample_bound(share: float) -> int:
    """The bound of the upper half of a hash for a sample of `share`."""
    if not 0 < share <= 1:
        raise ValueError(f"A sample of {share} cannot be taken: the share is above 0% and at most 100%.")
    return round(share * 2**32)


def sample_order(hashes: Hashes, salt: str) -> Hashes:
    """An order that only the keys and `salt` decide: the first N in it are a sample of N."""
    return hashes ^ np.uint64(hash_salt(salt))


def hash_salt(salt: str) -> int:
    return xxh64_intdigest(salt.encode(), SEED)
