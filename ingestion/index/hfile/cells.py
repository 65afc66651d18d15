"""Rows of a batch as the bytes of their cells.

    4 bytes   how long the cell's key is
    4         how long its value is
    2         how long the row key is    } the cell's key
    ...       the row key                }
    1         how long the family is     }
    ...       family and qualifier       }
    8         milliseconds since 1970    }
    1         4: a put                   }
    ...       the value

Numbers are big-endian. Arrow joins these parts of all rows at once, in C++: that takes variable lengths as fast as fixed ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.index.hfile.columns import Lengths, byte_lengths, byte_ranges

_PUT = 4
_BINARY = pa.large_binary()
_LENGTHS = np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
CELL_LENGTHS_BYTES = 8
"""Before the key of a cell."""
_STAMP = struct.Struct(">qB")
_MAX_FAMILY_BYTES = 127
_LATEST_MS = 2**63 - 1
"""Means to HBase: now."""
MAX_ROW_BYTES = 2**30
"""Of all cells of a row. A block has whole rows, and HBase takes blocks below 2 GiB."""


class RowBytes(NamedTuple):
    """`data`: the cells of some rows. `ends`: behind the last byte of each row."""

    data: memoryview
    ends: Lengths


@dataclass(frozen=True)
class CellLayout:
    """What all cells of a file share. Raises ValueError for a family, qualifiers or a time that HBase would not take."""

    family: bytes
    qualifiers: tuple[bytes, ...]
    timestamp_ms: int

    def __post_init__(self) -> None:
        if not 1 <= len(self.family) <= _MAX_FAMILY_BYTES:
            raise ValueError(f"The family has {len(self.family)} bytes; it needs 1 to {_MAX_FAMILY_BYTES}.")
        if not self.qualifiers or any(a >= b for a, b in zip(self.qualifiers, self.qualifiers[1:], strict=False)):
            raise ValueError(
                f"The qualifiers {self.qualifiers!r} must be at least one, different, and in the order of their bytes."
            )
        if not 0 <= self.timestamp_ms < _LATEST_MS:
            raise ValueError(f"The timestamp {self.timestamp_ms} is none; it is in milliseconds since 1970.")

    @cached_property
    def key_ends(self) -> tuple[bytes, ...]:
        """Of each qualifier what follows the row in a cell's key."""
        stamp = _STAMP.pack(self.timestamp_ms, _PUT)
        return tuple(bytes([len(self.family)]) + self.family + qualifier + stamp for qualifier in self.qualifiers)

    def row_sizes(self, rows: pa.Array, values: Sequence[pa.Array]) -> Lengths:
        """How many bytes the cells of each row have."""
        sizes = byte_lengths(rows) * len(values)
        for key_end, column in zip(self.key_ends, values, strict=True):
            sizes = sizes + byte_lengths(column) + (_LENGTHS.itemsize + len(key_end))
        return sizes

    def key_bytes(self, rows: int, row_key_bytes: int) -> int:
        """Of the keys of all cells of `rows` rows, whose own keys have `row_key_bytes`."""
        fixed = sum(_LENGTHS["row"].itemsize + len(key_end) for key_end in self.key_ends)
        return row_key_bytes * len(self.key_ends) + rows * fixed

    def row_bytes(self, rows: pa.Array, values: Sequence[pa.Array]) -> RowBytes:
        """All as of `binary_column`, of one length that is not 0: the rows' keys, and of each qualifier the values."""
        parts = [part for cell in zip(self.key_ends, values, strict=True) for part in _cell_parts(rows, *cell)]
        joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", _BINARY))
        ranges = byte_ranges(joined)
        ends = ranges.starts + ranges.lengths
        return RowBytes(ranges.data.data[: ends[-1]], ends)


def _cell_parts(rows: pa.Array, key_end: bytes, values: pa.Array) -> Iterator[pa.Array | pa.Scalar]:
    row_lengths = byte_lengths(rows)
    lengths = np.empty(len(rows), _LENGTHS)
    lengths["row"] = row_lengths
    lengths["key"] = row_lengths + (_LENGTHS["row"].itemsize + len(key_end))
    lengths["value"] = byte_lengths(values)
    yield _as_column(lengths)
    yield rows
    yield pa.scalar(key_end, _BINARY)
    yield values


def _as_column(records: np.ndarray[tuple[int], np.dtype[np.void]]) -> pa.Array:
    width = records.dtype.itemsize
    return pa.Array.from_buffers(pa.binary(width), len(records), [None, pa.py_buffer(records)]).cast(_BINARY)


def cell_key(row: bytes, key_end: bytes) -> bytes:
    return struct.pack(">h", len(row)) + row + key_end


def row_of_cell_key(key: bytes) -> bytes:
    return key[2 : 2 + int.from_bytes(key[:2], "big")]


def first_cell_key(cells: memoryview) -> bytes:
    key_length = int.from_bytes(cells[:4], "big")
    return bytes(cells[8 : 8 + key_length])
