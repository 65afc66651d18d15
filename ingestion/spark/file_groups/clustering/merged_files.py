"""The rows of some file groups, sorted by key, as new base files in a folder beside the table: nobody is held up while they are written.

Hudi's own writer writes them, into a table that has the same properties and no commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.many_rows.new_files import insert_rows
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import open_storage

STAGED_INSTANT = "00000000000000001"
"""In the names of the files until they are put in place."""


class MergedFile(NamedTuple):
    """`status`: what Hudi says of it. `path`: within the folder, and within the table but for the instant."""

    partition: str
    file_id: str
    path: str
    rows: int
    status: Any


def write_merged_files(
    spark: SparkSession, table: TableSpec, files: Sequence[BaseFile], avro_schema: str, folder: str
) -> list[MergedFile]:
    """Several Spark jobs. `folder`: a URI in the lake. `avro_schema`: the table's columns, as its newest commit has them."""
    _make_table(table.uri, folder)
    rows, options = sorted_rows(spark, table, files), {"hoodie.metadata.enable": "false"}
    statuses = insert_rows(table, folder, rows, STAGED_INSTANT, avro_schema, options, are_sorted=True)
    return [_merged_file(status) for status in statuses]


def sorted_rows(spark: SparkSession, table: TableSpec, files: Sequence[BaseFile]) -> DataFrame:
    """With Hudi's own columns. A task for each partition."""
    rows = hudi.read_table(spark, table)
    partitions = {file.group.partition for file in files}
    if table.partition_column is not None:
        names = (path.partition("=")[2] for path in partitions)
        rows = rows.where(F.col(table.partition_column).isin(*names))
    key = ("_hoodie_partition_path", "_hoodie_record_key")
    own = rows.where(_lies_in(files)).repartition(len(partitions), key[0])
    return own.sortWithinPartitions(*key)


def _lies_in(files: Iterable[BaseFile]) -> Any:
    """By the beginning of the file's name: after a clustering the column has another end."""
    name = F.col("_hoodie_file_name")
    return reduce(or_, (name.startswith(f"{file.group.file_id}_") for file in files))


def _make_table(uri: str, folder: str) -> None:
    filesystem, source = open_storage(uri)
    target = open_storage(folder)[1]
    filesystem.create_dir(f"{target}/.hoodie/timeline/history")
    with filesystem.open_input_stream(f"{source}/.hoodie/hoodie.properties") as file:
        lines = file.read().decode().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("hoodie.table.metadata.partitions")]
    with filesystem.open_output_stream(f"{target}/.hoodie/hoodie.properties") as file:
        file.write("".join(kept).encode())


def _merged_file(status: Any) -> MergedFile:
    stat = status.getStat()
    return MergedFile(status.getPartitionPath(), status.getFileId(), stat.getPath(), stat.getNumWrites(), status)
