"""The Bloom filter of a file's rows: HBase passes over a file that surely lacks a row.

It is cut in chunks of up to 109,000 keys (with 128 KiB), each a block that is written when it is full, with an index of their first keys.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ingestion.index.hfile.block_index import IndexEntry, hadoop_vint, root_content
from ingestion.index.hfile.blocks import BLOOM_CHUNK, BLOOM_META, BlockWriter
from ingestion.index.hfile.murmur import Hashes, double_hashes

FALSE_POSITIVES = 0.01
_KEYS_PER_BIT = math.log(2) ** 2 / -math.log(FALSE_POSITIVES)
_HASHES = math.ceil(math.log(2) / _KEYS_PER_BIT)
_FEWEST_BYTES = 64
_META = struct.Struct(">iqiiqqi")
_VERSION, _MURMUR = 3, 1
_BY_BYTES = b""
"""The comparator of the index: none is named, so keys are compared by their bytes."""


@dataclass
class BloomWriter:
    """`chunk_bytes`: a power of two."""

    blocks: BlockWriter
    chunk_bytes: int
    _keys: int = 0
    _capacity: int = 0
    _data_bytes: int = 0
    _pending: list[tuple[Hashes, Hashes]] = field(default_factory=list)
    """Of keys that are in no chunk yet."""
    _first_keys: deque[bytes] = field(default_factory=deque)
    """Of chunks that are not written yet."""
    _chunks: list[IndexEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.chunk_bytes < _FEWEST_BYTES or self.chunk_bytes & (self.chunk_bytes - 1):
            raise ValueError(
                f"A chunk of {self.chunk_bytes:,} bytes is none; it is a power of two, at least {_FEWEST_BYTES}."
            )
        self._keys_per_chunk = _capacity(self.chunk_bytes)

    def add(self, rows: pa.Array) -> None:
        for first in range(-self._keys % self._keys_per_chunk, len(rows), self._keys_per_chunk):
            self._first_keys.append(rows[first].as_py())
        self._pending.append(double_hashes(rows))
        self._keys += len(rows)

    def write_full_chunks(self, rows: int) -> None:
        """Those that are full with the first `rows` keys: so their places do not depend on how rows come in batches."""
        while (len(self._chunks) + 1) * self._keys_per_chunk <= rows:
            self._write_chunk()

    def finish(self) -> None:
        """Writes the last chunk, which is as small as its keys allow."""
        while self._first_keys:
            self._write_chunk()

    def write_meta(self) -> None:
        chunks = self._chunks
        numbers = _META.pack(_VERSION, self._data_bytes, _HASHES, _MURMUR, self._keys, self._capacity, len(chunks))
        self.blocks.write_block(BLOOM_META, [numbers, hadoop_vint(len(_BY_BYTES)), _BY_BYTES, root_content(chunks)])

    def _write_chunk(self) -> None:
        hashes, seeded = (np.concatenate(parts) for parts in zip(*self._pending, strict=True))
        keys = min(len(hashes), self._keys_per_chunk)
        self._pending = [(hashes[keys:], seeded[keys:])]
        size = self.chunk_bytes
        while size > _FEWEST_BYTES and keys <= _capacity(size // 2):
            size //= 2
        address = self.blocks.write_block(BLOOM_CHUNK, [_bits(hashes[:keys], seeded[:keys], size)])
        self._chunks.append(IndexEntry(address, self._first_keys.popleft()))
        self._data_bytes += size
        self._capacity += _capacity(size)


def _capacity(size: int) -> int:
    """How many keys so many bytes take."""
    return int(size * 8 * _KEYS_PER_BIT)


def _bits(hashes: Hashes, seeded: Hashes, size: int) -> bytes:
    """Bit |hash + i * seeded| modulo the number of bits, of signed numbers as in Java, for each i below the number of hashes."""
    bits = np.zeros(size * 8, np.uint8)
    places = hashes.copy()
    for _ in range(_HASHES):
        bits[np.abs(places.view(np.int32)) & np.int32(len(bits) - 1)] = 1
        places += seeded
    return np.packbits(bits, bitorder="little").tobytes()
