"""Parquet: types are those of the file. Texts are read with their dictionary, so that their size is known before there is any.

A file of 5 kB can hold a million rows of a megabyte each: one value, and how often it comes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, UnreadableRow
from ingestion.sources.files.formats.arrow_types import schema_of
from ingestion.sources.files.formats.parquet_pages import row_group_values
from ingestion.sources.files.formats.records import (
    MAX_CHUNK_BYTES,
    MAX_CHUNK_CELLS,
    MAX_COLUMNS,
    refuse_repeated_names,
)

MAX_NESTED_VALUES = 50_000_000
"""Of one nested column in one row group: how many of them are one row is only known once it is read."""


class ParquetFormat:
    def schema(self, file: Any, _known_names: Collection[str] = (), /) -> Schema:
        return schema_of(_open(file).schema_arrow)

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        parquet = _open(file)
        _refuse_too_many_values(file, parquet.metadata)
        width = max(1, len(parquet.schema_arrow.names))
        size = max(1, min(rows, MAX_CHUNK_CELLS // width))
        read = 0
        for groups in _groups_to_read(parquet.metadata):
            for batch in parquet.iter_batches(size, row_groups=groups):
                read += batch.num_rows
                for piece in _pieces(batch):
                    yield _chunk_of(piece)
        if read != parquet.metadata.num_rows:
            raise ValueError(f"it says that it has {parquet.metadata.num_rows:,} rows, and {read:,} can be read")


def _open(file: Any) -> pq.ParquetFile:
    metadata = pq.read_metadata(file)
    columns = _columns(metadata)
    if len(columns) > MAX_COLUMNS:
        raise ValueError(f"it has {len(columns):,} columns; {MAX_COLUMNS:,} are the most")
    file.seek(0)
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    parquet = pq.ParquetFile(file, metadata=metadata, read_dictionary=texts)
    refuse_repeated_names(parquet.schema_arrow.names)
    return parquet


def _columns(metadata: pq.FileMetaData) -> list[pq.ColumnSchema]:
    return [metadata.schema.column(place) for place in range(metadata.num_columns)]


def _refuse_too_many_values(file: Any, metadata: pq.FileMetaData) -> None:
    nested = {place: column.path for place, column in enumerate(_columns(metadata)) if column.max_repetition_level}
    if not nested:
        return
    for group in row_group_values(file, metadata.serialized_size, list(nested)):
        for path, values in zip(nested.values(), group, strict=True):
            if values > MAX_NESTED_VALUES:
                raise ValueError(
                    f"`{path}` has {values:,} values in one row group; {MAX_NESTED_VALUES:,} are the most, so "
                    "write smaller row groups"
                )


def _groups_to_read(metadata: pq.FileMetaData) -> list[list[int]]:
    """The row groups that are read as one. Each has dictionaries of its own, which cannot be joined within a list or a structure."""
    groups = list(range(metadata.num_row_groups))
    nested = any(column.path != column.name for column in _columns(metadata))
    return [[group] for group in groups] if nested else [groups]


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch, halved until its texts fit."""
    if batch.num_rows <= 1 or _text_bytes(batch) <= MAX_CHUNK_BYTES:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _text_bytes(batch: pa.RecordBatch) -> int:
    return sum(_bytes_of(column) for column in batch.columns)


def _bytes_of(array: pa.Array) -> int:
    """What the texts in it will take, written out."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0
    if pa.types.is_map(array.type):
        inside = array.values.slice(array.offsets[0].as_py(), array.offsets[-1].as_py() - array.offsets[0].as_py())
        return _bytes_of(inside)
    if pa.types.is_nested(array.type):
        return sum(map(_bytes_of, array.flatten() if pa.types.is_struct(array.type) else [array.flatten()]))
    return 0


def _chunk_of(batch: pa.RecordBatch) -> Chunk:
    if batch.num_rows == 1 and (size := _text_bytes(batch)) > MAX_CHUNK_BYTES:
        reason = f"the texts of the row take {size:,} bytes; {MAX_CHUNK_BYTES:,} are the most"
        return Chunk({}, (UnreadableRow(f"a row with the columns {', '.join(batch.schema.names)[:1_000]}", reason),))
    return Chunk(dict(zip(batch.schema.names, map(_written_out, batch.columns), strict=True)))


def _written_out(array: pa.Array) -> pa.Array:
    return array.cast(_plain_type(array.type)) if array.type != _plain_type(array.type) else array


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries, however deep."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_plain_type(kind.key_type)), kind.item_field.with_type(_plain_type(kind.item_type))
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_plain_type(kind.value_type)))
    return kind
