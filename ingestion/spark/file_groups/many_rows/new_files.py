"""New files of a commit that has begun, by Hudi's writer of rows: no row becomes a record in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.java_client import java_map
from ingestion.spark.session import jvm
from ingestion.spark.tables import hudi

_ROWS_A_TASK = 500_000
"""Of one partition: more are written by several tasks, each to files of its own."""


class Placement(Enum):
    """How rows lie in the partitions of the frame that has them."""

    ANYWHERE = auto()
    """They are brought together by the table's partitions, and sorted by key."""
    IN_FEW = auto()
    """Each task meets few of the table's partitions, and has a file open for each."""
    IN_RUNS = auto()
    """Those of one of the table's partitions follow each other: a task has one file open at a time."""


_INSTANT, _SEQUENCE, _KEY, _PARTITION, _FILE = hudi.META_COLUMNS


def write_new_files(
    table: TableSpec,
    rows: DataFrame,
    columns: Sequence[str],
    own: tuple[Column, Column],
    instant: str,
    avro_schema: str,
    options: Mapping[str, str],
    *,
    largest: int,
    placement: Placement = Placement.ANYWHERE,
) -> list[Any]:
    """The statuses of the files. `columns`: of the table; `own`: of each row the record key and the path of its partition, as Hudi writes them. `options`: of the index.
    `largest`: the rows of the partition with the most."""
    placed = rows.select(
        F.lit(instant).alias(_INSTANT),
        # No file that is written anew has such numbers: theirs begin with that of the file.
        F.concat(F.lit(f"{instant}_new_"), F.monotonically_increasing_id().cast("string")).alias(_SEQUENCE),
        own[0].alias(_KEY),
        own[1].alias(_PARTITION),
        F.lit("").alias(_FILE),
        *columns,
    )
    if placement is Placement.ANYWHERE:
        part = F.pmod(F.hash(_KEY), F.lit(max(1, -(-largest // _ROWS_A_TASK))))
        placed = placed.repartition(_PARTITION, part).sortWithinPartitions(_PARTITION, _KEY)
    are_sorted = placement is not Placement.IN_FEW
    return insert_rows(table, table.uri, placed, instant, avro_schema, options, are_sorted=are_sorted)


def insert_rows(
    table: TableSpec,
    uri: str,
    rows: DataFrame,
    instant: str,
    avro_schema: str,
    options: Mapping[str, str],
    *,
    are_sorted: bool,
) -> list[Any]:
    """The statuses of the files. `rows`: with Hudi's own columns, which they keep but for the name of the file; `are_sorted`: by partition, of which none comes again within a task, or into a file more. `uri`: of the table, or of one beside it
    with its properties."""
    frame: Any = rows
    spark, context = rows.sparkSession, frame.sparkSession.sparkContext
    java: Any = jvm(spark)
    hudi_java = java.org.apache.hudi
    given = {**hudi.table_options(table, parallelism=1), **options}
    config = hudi_java.config.HoodieWriteConfig.newBuilder().withPath(uri).forTable(table.name)
    config = config.withSchema(avro_schema).withProps(java_map(java, given)).build()
    to = hudi_java.table.HoodieSparkTable.create(config, hudi_java.client.common.HoodieSparkEngineContext(context._jsc))
    helper = hudi_java.HoodieDatasetBulkInsertHelper
    return [*helper.bulkInsert(frame._jdf, instant, to, config, are_sorted, True).collectAsList()]
