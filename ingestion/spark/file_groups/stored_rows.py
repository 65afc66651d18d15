"""The stored rows of a few keys, read by Arrow from the base files that may hold them.

Of a row group the keys are read first, and the other columns only where one of them is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingestion.spark.file_groups import BaseFile
from ingestion.spark.tables.timeline import open_storage

KEY, PARTITION, INSTANT = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time"
FILE_ID = "_lakehub_file_id"
LOCATION = pa.schema([(name, pa.string()) for name in (KEY, PARTITION, INSTANT, FILE_ID)])
"""Where a row lies, and which commit wrote it."""


def read_stored_rows(uri: str, files: Iterable[BaseFile], keys: Iterable[str], columns: pa.Schema) -> pa.Table:
    """The rows with these keys in files of the table at `uri`: where they lie (LOCATION), then `columns` in these types, null where a file is older than the column.

    Raises ArrowInvalid or ArrowNotImplementedError where a file has a column in a type that does not become the one asked for.
    """
    ordered = sorted(keys)
    wanted = pa.array(ordered, pa.string())
    tables = [table for file in files for table in _rows_of_file(uri, file, ordered, wanted, columns)]
    schema = pa.schema([*LOCATION, *columns])
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _rows_of_file(
    uri: str, file: BaseFile, ordered: Sequence[str], wanted: pa.Array, columns: pa.Schema
) -> Iterator[pa.Table]:
    filesystem, root = open_storage(uri)
    with filesystem.open_input_file(f"{root}/{file.path}") as opened:
        parquet = pq.ParquetFile(opened)
        there = [name for name in columns.names if name in parquet.schema_arrow.names]
        for group in range(parquet.num_row_groups):
            if not _may_hold(parquet, group, ordered):
                continue
            is_wanted = pc.is_in(parquet.read_row_group(group, columns=[KEY])[KEY], wanted)
            if pc.any(is_wanted).as_py():
                rows = parquet.read_row_group(group, columns=[KEY, PARTITION, INSTANT, *there]).filter(is_wanted)
                yield _located(rows, file, columns)


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
    return pa.table(
        [rows[KEY], rows[PARTITION], rows[INSTANT], file_ids, *values], schema=pa.schema([*LOCATION, *columns])
    )
