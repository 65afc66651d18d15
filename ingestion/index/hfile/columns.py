"""A column of a batch, however it comes: as Arrow's binary with offsets of 64 bits, without nulls."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = "pa.Array | pa.ChunkedArray | npt.NDArray[np.uint8]"
"""Byte strings: Arrow's binary or string types, also with a dictionary, or a matrix of bytes with a row of equal length for each."""
Lengths = npt.NDArray[np.int64]

_BINARY = pa.large_binary()
_BYTE_STRINGS = (
    pa.types.is_binary,
    pa.types.is_string,
    pa.types.is_large_binary,
    pa.types.is_large_string,
    pa.types.is_fixed_size_binary,
)


class ByteRanges(NamedTuple):
    """Of each value of a column its first byte in `data`, and how many it has."""

    data: npt.NDArray[np.uint8]
    starts: Lengths
    lengths: Lengths


def binary_column(column: Column, name: str) -> pa.Array:
    """`name`: for errors. Raises TypeError for what holds no byte strings, ValueError for a null."""
    if isinstance(column, np.ndarray):
        column = _from_matrix(column, name)
    if not isinstance(column, pa.Array | pa.ChunkedArray) or not _holds_bytes(column.type):
        kind = getattr(column, "type", type(column).__name__)
        raise TypeError(f"{kind} came as {name}, byte strings are needed: cast them to Arrow's binary.")
    array = column.cast(_BINARY)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.null_count:
        place = pc.index(array.is_null(), True).as_py()
        raise ValueError(
            f"The {name} of row {place} of the batch is null, and HBase has no nulls: leave the row out, or write an empty value."
        )
    return array


def byte_ranges(column: pa.Array) -> ByteRanges:
    """Of a column that `binary_column` returned; nothing is copied."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
    # Arrow may leave the bytes out where all values are empty.
    return ByteRanges(np.frombuffer(data or b"", np.uint8), ends[:-1], np.diff(ends))


def byte_lengths(column: pa.Array) -> Lengths:
    lengths: Lengths = pc.binary_length(column).to_numpy()
    return lengths


def _from_matrix(matrix: npt.NDArray[np.uint8], name: str) -> pa.Array:
    if matrix.dtype != np.uint8 or matrix.ndim != 2:
        # numpy's own strings lose NUL bytes at their end.
        raise TypeError(
            f"numpy's {matrix.dtype} in {matrix.ndim} dimension(s) came as {name}; a matrix of uint8 is needed, or Arrow's binary."
        )
    rows, length = matrix.shape
    return pa.Array.from_buffers(pa.binary(length), rows, [None, pa.py_buffer(np.ascontiguousarray(matrix))])


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_kind(kind) for is_kind in _BYTE_STRINGS)
