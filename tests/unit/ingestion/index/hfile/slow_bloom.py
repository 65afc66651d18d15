"""HBase's Bloom filter and its hash, one key at a time, with Java's signed numbers of 32 bits."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

_M = 0x5BD1E995


@dataclass
class SlowBloom:
    """`first_keys`: of each chunk."""

    hashes: int
    first_keys: list[bytes]
    chunks: list[bytes]

    def may_contain(self, row: bytes) -> bool:
        place = bisect_right(self.first_keys, row) - 1
        if place < 0:
            return False
        bits = self.chunks[place]
        first = slow_murmur(row, 0)
        second = slow_murmur(row, first)
        for number in range(self.hashes):
            bit = abs(_remainder(_int(first + number * second), len(bits) * 8))
            if not bits[bit // 8] >> bit % 8 & 1:
                return False
        return True


def slow_murmur(data: bytes, seed: int) -> int:
    mixed = _int(seed ^ len(data))
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = _int(int.from_bytes(data[at : at + 4], "little") * _M)
        word = _int((word ^ _unsigned(word) >> 24) * _M)
        mixed = _int(mixed * _M) ^ word
    left = [byte - 256 if byte > 127 else byte for byte in data[whole:]]
    for place in reversed(range(len(left))):
        mixed = _int(mixed ^ left[place] << 8 * place)
    if left:
        mixed = _int(mixed * _M)
    mixed = _int((mixed ^ _unsigned(mixed) >> 13) * _M)
    return _int(mixed ^ _unsigned(mixed) >> 15)


def _int(number: int) -> int:
    """As Java's int."""
    return (number + 2**31) % 2**32 - 2**31


def _unsigned(number: int) -> int:
    return number % 2**32


def _remainder(number: int, divisor: int) -> int:
    """As Java's %: of the dividend's sign."""
    return abs(number) % divisor * (1 if number >= 0 else -1)
