"""Writes the rows of batches, in their order, as one HFile."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ingestion.index.hfile.block_index import BlockIndexWriter, IndexEntry
from ingestion.index.hfile.blocks import DATA, FILE_INFO, ROOT_INDEX, BlockWriter, Output
from ingestion.index.hfile.bloom import BloomWriter
from ingestion.index.hfile.cells import CELL_LENGTHS_BYTES, MAX_ROW_BYTES, CellLayout, cell_key, first_cell_key
from ingestion.index.hfile.columns import Column, Lengths, binary_column, byte_lengths
from ingestion.index.hfile.protobuf import message
from ingestion.index.hfile.row_order import check_rows, shown
from ingestion.index.hfile.trailer import LAST_KEY, MESSAGE_MAGIC, Trailer, file_info_content

BLOCK_BYTES = 16 * 1024
"""Of data. To answer a key HBase reads a block and passes over what stands before the key: a fourth of its own default, with which keys all over a table that its
cache cannot hold took 1.4 to 1.7 times as long."""
_PIECE_BYTES = 2 * 2**20
"""Of cells that are made at once: more take memory and leave the processor's cache."""
_YES, _NO = b"\xff", b"\x00"
_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")


@dataclass(frozen=True)
class BlockSizes:
    """In bytes. A block of data ends with the row that makes it this long, a block of the index with the entry that does. `bloom_chunk`: a power of two. Those of the
    index and of the Bloom filter are HBase's own defaults."""

    data: int = BLOCK_BYTES
    index: int = 128 * 1024
    bloom_chunk: int = 128 * 1024

    def __post_init__(self) -> None:
        if min(self.data, self.index) < 1:
            raise ValueError(
                f"There are no blocks of {min(self.data, self.index)} bytes; the usual are {BLOCK_BYTES:,} and {2**17:,}."
            )


class WrittenHFile(NamedTuple):
    """`first`, `last`: row keys. `size`: of the file, in bytes."""

    rows: int
    cells: int
    first: bytes
    last: bytes
    size: int


class HFileWriter:
    """Writes one file to `out`, which is never sought in and which the caller closes. Without `close` it is no HFile, and HBase refuses it.

    `qualifiers`: of the cells of each row, different and in the order of their bytes. `timestamp_ms`: of all cells, in milliseconds since 1970.
    Memory: the batch, 4 MiB of its cells, a block of each kind, the hashes of a chunk of the Bloom filter, and an entry for each block of the index.
    Raises ValueError for a family, qualifiers, a timestamp or sizes that cannot be.
    """

    def __init__(
        self,
        out: Output,
        *,
        family: bytes,
        qualifiers: Sequence[bytes],
        timestamp_ms: int,
        sizes: BlockSizes | None = None,
    ) -> None:
        sizes = sizes or BlockSizes()
        self._layout = CellLayout(family, tuple(qualifiers), timestamp_ms)
        self._blocks = BlockWriter(out)
        self._index = BlockIndexWriter(self._blocks, sizes.index)
        self._bloom = BloomWriter(self._blocks, sizes.bloom_chunk)
        self._block_bytes = sizes.data
        self._pending: list[memoryview] = []
        self._pending_bytes = 0
        self._rows = self._row_key_bytes = self._cell_bytes = 0
        self._first = self._last = b""
        self._last_data_block = 0
        self._refusal = ""

    def append(self, rows: Column, values: Sequence[Column]) -> None:
        """`rows`: keys of 1 to 32,767 bytes, strictly ascending in the order of their bytes, also after those of the batch before. `values`: of each
        qualifier a column as long as `rows`.

        Raises TypeError for columns that are no byte strings and ValueError for keys or values that cannot be taken; nothing of the batch is written then,
        and the writer takes another. After an error of the output it takes nothing more.
        """
        self._check_open()
        keys = binary_column(rows, "key")
        columns = self._value_columns(values, len(keys))
        if not len(keys):
            return
        check_rows(keys, self._last)
        sizes = self._layout.row_sizes(keys, columns)
        _check_sizes(keys, sizes)
        with self._writing():
            for begin, end in _pieces(sizes):
                self._append_piece(keys[begin:end], [column[begin:end] for column in columns])
            self._first = self._first or keys[0].as_py()
            self._last = keys[-1].as_py()
            self._row_key_bytes += int(byte_lengths(keys).sum())
            self._cell_bytes += int(sizes.sum())

    def close(self) -> WrittenHFile:
        """Writes the rest and says what the file has. Raises ValueError where no row was appended: HBase does not load an empty file."""
        self._check_open()
        if not self._rows:
            raise ValueError("No row was appended, and HBase does not load an empty HFile; write none.")
        with self._writing():
            if self._pending:
                self._write_data_block(self._rows)
            self._write_end()
        self._refusal = "The file is closed"
        return WrittenHFile(self._rows, self._cells, self._first, self._last, self._blocks.position)

    @property
    def _cells(self) -> int:
        return self._rows * len(self._layout.qualifiers)

    def _check_open(self) -> None:
        if self._refusal:
            raise ValueError(f"{self._refusal}; write another file.")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What fails in it leaves a file that is not whole, which nothing may finish."""
        self._refusal = "An earlier error left the file in parts"
        yield
        self._refusal = ""

    def _value_columns(self, values: Sequence[Column], rows: int) -> list[pa.Array]:
        qualifiers = self._layout.qualifiers
        if len(values) != len(qualifiers):
            raise ValueError(f"{len(values)} columns of values came for {len(qualifiers)} qualifiers.")
        columns = [binary_column(column, f"value of {name!r}") for name, column in zip(qualifiers, values, strict=True)]
        for name, column in zip(qualifiers, columns, strict=True):
            if len(column) != rows:
                raise ValueError(f"{len(column):,} values of {name!r} came for {rows:,} keys.")
        return columns

    def _append_piece(self, keys: pa.Array, columns: Sequence[pa.Array]) -> None:
        self._bloom.add(keys)
        cells = self._layout.row_bytes(keys, columns)
        ends = cells.ends.tolist()
        begin = row = 0
        while True:
            row = bisect_left(ends, begin + self._block_bytes - self._pending_bytes, row)
            if row == len(ends):
                break
            end = ends[row]
            self._add_pending(cells.data[begin:end])
            self._write_data_block(self._rows + row + 1)
            begin = end
        if begin < len(cells.data):
            self._add_pending(cells.data[begin:])
        self._rows += len(keys)

    def _add_pending(self, cells: memoryview) -> None:
        self._pending.append(cells)
        self._pending_bytes += len(cells)

    def _write_data_block(self, rows: int) -> None:
        """`rows`: all up to its end."""
        first_key = first_cell_key(self._pending[0])
        address = self._blocks.write_block(DATA, self._pending)
        self._pending, self._pending_bytes = [], 0
        self._last_data_block = address.offset
        self._index.add(IndexEntry(address, first_key))
        self._bloom.write_full_chunks(rows)

    def _write_end(self) -> None:
        blocks = self._blocks
        self._bloom.finish()
        index = self._index.finish()
        blocks.write_block(ROOT_INDEX, [])  # The index of meta blocks, of which there are none.
        file_info = blocks.write_block(FILE_INFO, [file_info_content(self._file_info())])
        self._bloom.write_meta()
        trailer = Trailer(
            file_info=file_info.offset,
            load_on_open=index.root,
            index_bytes=index.data_bytes,
            data_bytes=blocks.data_bytes,
            root_entries=index.root_entries,
            meta_entries=0,
            cells=self._cells,
            levels=index.levels,
            first_data_block=0,
            last_data_block=self._last_data_block,
        )
        blocks.write(trailer.content())
        blocks.flush()

    def _file_info(self) -> dict[bytes, bytes]:
        timestamp = self._layout.timestamp_ms
        key_bytes = self._layout.key_bytes(self._rows, self._row_key_bytes)
        value_bytes = self._cell_bytes - key_bytes - CELL_LENGTHS_BYTES * self._cells
        return {
            LAST_KEY: cell_key(self._last, self._layout.key_ends[-1]),
            b"hfile.AVG_KEY_LEN": _INT.pack(key_bytes // self._cells),
            b"hfile.AVG_VALUE_LEN": _INT.pack(value_bytes // self._cells),
            b"hfile.CREATE_TIME_TS": _LONG.pack(timestamp),
            b"BLOOM_FILTER_TYPE": b"ROW",
            b"LAST_BLOOM_KEY": self._last,
            b"BULKLOAD_SOURCE_TASK": b"lakehub",
            b"BULKLOAD_TIMESTAMP": _LONG.pack(timestamp),
            b"EXCLUDE_FROM_MINOR_COMPACTION": _NO,
            b"MAJOR_COMPACTION_KEY": _YES,
            b"TIMERANGE": MESSAGE_MAGIC + message([(1, timestamp), (2, timestamp)]),
        }


def _check_sizes(keys: pa.Array, sizes: Lengths) -> None:
    place = int(sizes.argmax())
    if sizes[place] > MAX_ROW_BYTES:
        raise ValueError(
            f"The row {shown(keys[place].as_py())} has cells of {sizes[place]:,} bytes; a block of HBase takes at most {MAX_ROW_BYTES:,}."
        )


def _pieces(sizes: Lengths) -> Iterator[tuple[int, int]]:
    """Where to cut the rows, so that the cells of a piece have about `_PIECE_BYTES`; a larger row is a piece of its own."""
    ends = np.cumsum(sizes)
    begin = taken = 0
    while begin < len(sizes):
        end = max(int(np.searchsorted(ends, taken + _PIECE_BYTES, "right")), begin + 1)
        yield begin, end
        begin, taken = end, int(ends[end - 1])
