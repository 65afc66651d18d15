"""The stored rows of a few keys, read by Arrow from the base files that may hold them.

Of a row group the keys are read first, and the other columns only where one of them is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingestion.spark.file_groups import BaseFile
from ingestion.spark.tables.timeline import open_storage

KEY, PARTITION, INSTANT = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"
FILE_ID = "_lakehub_file_id"
LOCATION = pa.schema([(name, pa.string()) for name in (KEY, PARTITION, INSTANT, FILE_ID)])
"""Where a row lies, and which commit wrote it."""
MAX_TEXT_BYTES = 256 * 2**20
"""Of the texts of all rows, written out."""
READERS = 4
"""Files that are read side by side: an object store lets each wait."""


def read_stored_rows(uri: str, files: Iterable[BaseFile], keys: Iterable[str], columns: pa.Schema) -> pa.Table:
    """The rows with these keys in files of the table at `uri`: where they lie (LOCATION), then `columns` in these types, null where a file is older than the column.

    Raises ArrowInvalid or ArrowNotImplementedError where a file has a column in a type that does not become the one asked for, and where
    the texts of the rows take more than MAX_TEXT_BYTES.
    """
    ordered = sorted(keys)
    wanted = pa.array(ordered, pa.string())
    read = partial(_rows_of_file, uri, ordered, wanted, columns)
    tables, text_bytes = [pa.schema([*LOCATION, *columns]).empty_table()], 0
    with ThreadPoolExecutor(READERS) as readers:
        for rows, size in readers.map(read, files):
            tables += rows
            text_bytes = _checked_text_bytes(text_bytes + size)
    return pa.concat_tables(tables)


def _rows_of_file(
    uri: str, ordered: Sequence[str], wanted: pa.Array, columns: pa.Schema, file: BaseFile
) -> tuple[list[pa.Table], int]:
    """Of each row group, and how many bytes their texts take. Raises ArrowInvalid."""
    tables, text_bytes = [], 0
    for rows in _wanted_rows(uri, file, ordered, wanted, columns.names):
        text_bytes = _checked_text_bytes(text_bytes + _text_bytes(rows))
        tables.append(_located(rows, file, columns))
    return tables, text_bytes


def _wanted_rows(
    uri: str, file: BaseFile, ordered: Sequence[str], wanted: pa.Array, names: Sequence[str]
) -> Iterator[pa.Table]:
    filesystem, root = open_storage(uri)
    with filesystem.open_input_file(f"{root}/{file.path}") as opened:
        parquet = _open_with_dictionaries(opened)
        there = [name for name in names if name in parquet.schema_arrow.names]
        for group in range(parquet.num_row_groups):
            if not _may_hold(parquet, group, ordered):
                continue
            is_wanted = pc.is_in(parquet.read_row_group(group, columns=[KEY])[KEY], wanted)
            if pc.any(is_wanted).as_py():
                yield parquet.read_row_group(group, columns=[KEY, PARTITION, INSTANT, *there]).filter(is_wanted)


def _open_with_dictionaries(opened: pa.NativeFile) -> pq.ParquetFile:
    """A text that is there many times is read once: a row group of 5 kB may be 500 MB of texts that are written out."""
    plain = pq.ParquetFile(opened)
    is_text = {
        field.name: pa.types.is_string(field.type) or pa.types.is_binary(field.type) for field in plain.schema_arrow
    }
    texts = [name for name, known in is_text.items() if known and name != KEY]
    return pq.ParquetFile(opened, metadata=plain.metadata, read_dictionary=texts)


def _text_bytes(rows: pa.Table) -> int:
    chunks = [chunk for column in rows.columns for chunk in column.chunks if pa.types.is_dictionary(chunk.type)]
    return sum(pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0 for chunk in chunks)


def _checked_text_bytes(size: int) -> int:
    """Raises ArrowInvalid."""
    if size > MAX_TEXT_BYTES:
        raise pa.ArrowInvalid(f"the texts of the stored rows take {size:,} bytes or more")
    return size


def _may_hold(parquet: pq.ParquetFile, group: int, ordered: Sequence[str]) -> bool:
    """By the least and greatest key of the row group, where the file has them."""
    place = parquet.schema_arrow.names.index(KEY)
    statistics = parquet.metadata.row_group(group).column(place).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    at = bisect_left(ordered, statistics.min)
    return at < len(ordered) and ordered[at] <= statistics.max


def _located(rows: pa.Table, file: BaseFile, columns: pa.Schema) -> pa.Table:
    file_ids = pa.array([file.group.file_id] * rows.num_rows, pa.string())
    values = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in columns
    ]
    places = [rows[name].cast(pa.string()) for name in (KEY, PARTITION, INSTANT)]
    return pa.table([*places, file_ids, *values], schema=pa.schema([*LOCATION, *columns]))
