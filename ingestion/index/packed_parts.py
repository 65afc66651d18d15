"""Bytes in one piece, each part with its length before it: what is handed to Java and back at once. Four bytes each, big-endian, as Java's data streams have them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_NUMBER = struct.Struct(">i")
_NOTHING = -1


def packed_number(number: int) -> bytes:
    return _NUMBER.pack(number)


def packed_parts(parts: Iterable[bytes | None]) -> bytes:
    """None is a part that is not there, which is not an empty one."""
    return b"".join(packed_number(_NOTHING) if part is None else packed_number(len(part)) + part for part in parts)


class PartReader:
    def __init__(self, packed: bytes) -> None:
        self._packed, self._at = packed, 0

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._packed)

    def number(self) -> int:
        (number,) = _NUMBER.unpack_from(self._packed, self._at)
        self._at += _NUMBER.size
        return int(number)

    def part(self) -> bytes:
        """Raises ValueError where there is less than its length says."""
        length = self.number()
        begin, self._at = self._at, self._at + length
        if length < 0 or self._at > len(self._packed):
            raise ValueError(f"A part of {length} bytes does not fit into {len(self._packed)} at {begin}.")
        return self._packed[begin : self._at]
