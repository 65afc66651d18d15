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


class ByteRanges(NamedTuple):
    """Of each value of a column its first byte in `data`, and how many it has."""

    data: npt.NDArray[np.uint8]
    starts: Lengths
    lengths: Lengths


def binary_column(column: Column, name: str) -> pa.Array:
    """`name`: for errors. Raises TypeError for what holds no byte strings, ValueError for a null."""
    array = _arrow_array(column, name)
    if array.null_count:
        place = pc.index(array.is_null(), True).as_py()
        raise ValueError(
            f"The {name} of row {place} of the batch is null, HBase has no nulls; leave the row out or write an empty value."
        )
    return array.cast(_BINARY)


def byte_ranges(column: pa.Array) -> ByteRanges:
    """Of a column that `binary_column` returned; nothing is copied."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
    # Arrow may leave the bytes out where all values are empty.
    return ByteRanges(np.frombuffer(data or b"", np.uint8), ends[:-1], np.diff(ends))


def byte_lengths(column: pa.Array) -> Lengths:
    lengths: Lengths = pc.binary_length(column).to_numpy()
    return lengths


def _arrow_array(column: Column, name: str) -> pa.Array:
    if isinstance(column, np.ndarray):
        return _from_matrix(column, name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if not isinstance(column, pa.Array) or not _holds_bytes(column.type):
        kind = column.type if isinstance(column, pa.Array) else type(column).__name__
        raise TypeError(f"The {name}s are {kind}; byte strings are needed: cast them to Arrow's binary or string.")
    return column


def _from_matrix(matrix: npt.NDArray[np.uint8], name: str) -> pa.Array:
    if matrix.dtype != np.uint8 or matrix.ndim != 2:
        # numpy's own strings lose NUL bytes at their end.
        raise TypeError(
            f"The {name}s are {matrix.dtype} with {matrix.ndim} dimension(s); a matrix of uint8 is needed, or an Arrow array."
        )
    rows, length = matrix.shape
    return pa.Array.from_buffers(pa.binary(length), rows, [None, pa.py_buffer(np.ascontiguousarray(matrix))])


def _holds_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        is_kind(kind)
        for is_kind in (
            types.is_binary,
            types.is_string,
            types.is_large_binary,
            types.is_large_string,
            types.is_fixed_size_binary,
        )
    )
