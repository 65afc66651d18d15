"""A commit of a few rows, placed in the driver and written by Hudi's own Java client: a Spark write takes longer than all that is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.domain.column_types import is_nested
from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.arrow_types import arrow_type
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.file_groups.lookups import newest_files_of
from ingestion.spark.file_groups.record_locations import has_certain_keys, key_text, stored_file_id
from ingestion.spark.indexes import Index
from ingestion.spark.job import Job
from ingestion.spark.loading.judging import plain_rows
from ingestion.spark.loading.small_batches import MAX_ROW_BYTES, MAX_ROWS, are_few, columns_to_write
from ingestion.spark.tables.timeline import open_storage

KEY, PARTITION, FILE_ID = "_lakehub_key", "_lakehub_at", "_lakehub_file_id"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999, which have four digits."""
_FLAGS = (KEY, PARTITION, FILE_ID)


def columns_of_few(job: Job, target: Schema, index: Index, rows: int) -> str | None:
    """The table's columns as its newest commit has them; None: the commit is Spark's."""
    return None if rows > MAX_ROWS else columns_of_arrow(job, target, index)


def columns_of_arrow(job: Job, target: Schema, index: Index) -> str | None:
    """The same of any number of rows. None: Arrow cannot write them as Hudi does."""
    if not has_certain_keys(job.table, target) or any(map(is_nested, target.types.values())):
        return None
    return columns_to_write(job.spark, job.table, target) if index.is_up_to_date(job.table) else None


def place_few(job: Job, changed: DataFrame, target: Schema, uri: str, *, is_gone: str) -> list[PlacedRow] | None:
    """`changed`: rows with Hudi's columns of where they are stored, those of `target`, and a flag for those that go. Written below `uri`, as they are read by the types of Arrow.
    None: they are large, lie in many or large files, or a key has no certain text."""
    located = changed.select(
        F.col("_hoodie_record_key").alias(KEY),
        F.col("_hoodie_partition_path").alias(PARTITION),
        stored_file_id().alias(FILE_ID),
        F.col(is_gone),
        *target.names,
    )
    if _text_bytes(located) > MAX_ROW_BYTES:
        return None
    located.write.mode("overwrite").parquet(f"{uri}/changed")
    filesystem, path = open_storage(f"{uri}/changed")
    rows = pq.read_table(path, filesystem=filesystem, partitioning=None, coerce_int96_timestamp_unit="us")
    groups = {
        FileGroup(*place)
        for place in zip(rows[PARTITION].to_pylist(), rows[FILE_ID].to_pylist(), strict=True)
        if place[1]
    }
    if not are_few(newest_files_of(job.spark, job.table.uri, groups)):
        return None
    paths = _partition_paths(rows, job.table)
    if paths is None:
        return None
    types = pa.schema([(name, arrow_type(type_)) for name, type_ in target.types.items()])
    values = plain_rows(rows.select(target.names).cast(types))
    places = rows.select([*_FLAGS, is_gone]).to_pylist()
    texts = zip(*(rows[name].cast(pa.string()).to_pylist() for name in job.table.record_key), strict=True)
    placed = [
        [*_placed(place, row, key_text(key, job.table), path, is_gone)]
        for place, row, key, path in zip(places, values, texts, paths, strict=True)
    ]
    return None if any(not each for each in placed) else [row for each in placed for row in each]


def _text_bytes(rows: DataFrame) -> int:
    """Of the columns that may be long."""
    long = [name for name, type_ in rows.dtypes if type_ in ("string", "binary")]
    sums = rows.agg(*(F.sum(F.octet_length(F.col(name))).alias(name) for name in long)).first()
    return sum(size or 0 for size in sums) if sums is not None else 0


def _partition_paths(rows: pa.Table, table: TableSpec) -> list[str] | None:
    """Of each row, as Spark writes it. None: there is a date that Arrow writes otherwise."""
    column = table.partition_column
    if column is None:
        return [""] * rows.num_rows
    if pa.types.is_date(rows[column].type):
        days = pc.min_max(rows[column].cast(pa.date32()).cast(pa.int32())).as_py()
        if rows.num_rows and (days["min"] < _FIRST_DAY or days["max"] > _LAST_DAY):
            return None
    return [f"{column}={text}" for text in rows[column].cast(pa.string()).to_pylist()]


def _placed(
    place: Mapping[str, Any], row: Mapping[str, Any], new_key: str | None, partition: str, is_gone: str
) -> Iterator[PlacedRow]:
    """`partition`: the path to which the row goes. Nothing where the key has no certain text."""
    key = place[KEY]
    group = None if key is None else FileGroup(place[PARTITION], place[FILE_ID])
    if group is None:
        if new_key is not None:
            yield PlacedRow(new_key, partition, None, row)
    elif place[is_gone]:
        yield PlacedRow.removed(key, group)
    elif group.partition == partition:
        yield PlacedRow(key, partition, group.file_id, row)
    else:
        yield PlacedRow.removed(key, group)
        yield PlacedRow(key, partition, None, row)
