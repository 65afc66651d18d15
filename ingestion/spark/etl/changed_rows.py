"""The rows of an input that have changed, as they were and as they are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingestion.spark.etl.checks.partition_types import partition_fields
from ingestion.spark.etl.input_changes import ChangedFiles, HistoryGone
from ingestion.spark.tables.spark_columns import as_type, type_of_spark
from ingestion.spark.tables.timeline import Timeline, open_storage

_COMMIT = "_hoodie_commit_time"
_WRITTEN = ("_hoodie_record_key", "_hoodie_partition_path", _COMMIT)
"""A row that is written anew with its file keeps them; one that changes gets another commit. A key comes once in a partition, and may be in several."""
_READERS = 8


def changed_rows(
    spark: SparkSession, uri: str, files: ChangedFiles, columns: T.StructType
) -> tuple[DataFrame, DataFrame]:
    """As they were whenever they were read, and as they are: rows with `columns`, which are those of the table now. Rows that stayed as they were are in neither, but for some that were written
    beside a commit that was read. Raises HistoryGone."""
    partitions = {name.casefold() for name in partition_fields(Timeline(uri).properties)}
    before, now = (_read(spark, uri, paths, columns, partitions) for paths in (files.before, files.now))
    return (
        before.join(now, [*_WRITTEN], "left_anti").drop(*_WRITTEN),
        # Told by the row alone: a join would move all rows of the files.
        now.where(F.col(_COMMIT) >= files.first_instant).drop(*_WRITTEN),
    )


def _read(
    spark: SparkSession, uri: str, paths: Sequence[str], columns: T.StructType, partitions: Container[str]
) -> DataFrame:
    """Files of one schema together: Spark does not read a number from a file that has it in a narrower type."""
    frames = [
        _as_now(spark.read.parquet(*(f"{uri}/{_literal(path)}" for path in alike)), columns, partitions)
        for alike in _by_schema(uri, paths)
    ]
    if not frames:
        meta = [T.StructField(name, T.StringType()) for name in _WRITTEN]
        return spark.createDataFrame([], T.StructType([*meta, *columns.fields]))
    return reduce(DataFrame.unionByName, frames)


def _literal(path: str) -> str:
    """Spark takes a path for a pattern."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def _as_now(rows: DataFrame, columns: T.StructType, partitions: Container[str]) -> DataFrame:
    """As the reader of the table has them: it takes the values of `partitions` from the names of folders, where an empty text and a null are the same."""
    there = {field.name: field.dataType for field in rows.schema.fields}
    values = [
        as_type(F.col(f"`{field.name}`"), type_of_spark(there[field.name]), type_of_spark(field.dataType)).alias(
            field.name
        )
        if field.name in there
        else F.lit(None).cast(field.dataType).alias(field.name)
        for field in columns.fields
    ]
    read = rows.select(*_WRITTEN, *values)
    texts = [name for name, type_ in read.dtypes if type_ == "string" and name.casefold() in partitions]
    return read.withColumns({name: F.nullif(F.col(f"`{name}`"), F.lit("")) for name in texts}) if texts else read


def _by_schema(uri: str, paths: Iterable[str]) -> list[list[str]]:
    filesystem, root = open_storage(uri)

    def schema_of(path: str) -> tuple[str, pa.Schema]:
        try:
            return path, pq.read_schema(f"{root}/{path}", filesystem=filesystem).remove_metadata()
        except FileNotFoundError as problem:
            raise HistoryGone(f"the file {path} of {uri} is cleaned away") from problem

    alike = defaultdict(list)
    with ThreadPoolExecutor(_READERS) as readers:
        for path, schema in readers.map(schema_of, paths):
            alike[str(schema)].append(path)
    return [*alike.values()]
