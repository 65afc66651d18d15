"""Rows in place of all that some partitions hold: one commit, by which these are replaced also where they get no row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.direct_write import require_all_written
from ingestion.spark.file_groups.java_client import commit_client, java_list, java_map
from ingestion.spark.file_groups.lookups import newest_base_files
from ingestion.spark.file_groups.many_rows.new_files import Placement, write_new_files
from ingestion.spark.file_groups.many_rows.replace_commits import REPLACE, begin_replacing, file_ids_by_partition
from ingestion.spark.session import jvm
from ingestion.spark.tables.commit_failpoint import FAILPOINT
from lakehub.kernel import failpoint


def overwrite_partitions(
    table: TableSpec,
    rows: DataFrame,
    columns: Sequence[str],
    own: tuple[Column, Column],
    partitions: Collection[str],
    avro_schema: str,
    options: Mapping[str, str],
    marks: Mapping[str, str],
    *,
    largest: int,
    placement: Placement,
) -> None:
    """`partitions`: paths, those of the rows among them. `rows`, `columns`, `own`, `largest`, `placement`: as for new files. `avro_schema`: of the table, as its newest commit has it. Raises RowsNotWritten."""
    spark = rows.sparkSession
    java: Any = jvm(spark)
    with commit_client(spark, table, avro_schema, options) as client:
        instant = client.startCommit(REPLACE)
        begin_replacing(java, client, instant, "INSERT_OVERWRITE")
        replaced = newest_base_files(
            spark, table.uri, partitions
        )  # as Hudi has begun with: what comes after is a conflict
        written = write_new_files(
            table, rows, columns, own, instant, avro_schema, options, largest=largest, placement=placement
        )
        require_all_written(written, table)
        failpoint.reach(FAILPOINT)
        option = java.org.apache.hudi.common.util.Option
        ids = file_ids_by_partition(java, replaced)
        metadata = option.of(java_map(java, marks))
        client.commit(instant, java_list(java, written), metadata, REPLACE, ids, option.empty(), option.empty())
