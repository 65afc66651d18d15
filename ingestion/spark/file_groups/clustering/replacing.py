"""Merged files take the place of those that they were made from: one commit within the table's fence, without a Spark job.

Each file is put on record in the table's markers before it is moved there, so that a commit that did not end takes them away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.clustering.merged_files import STAGED_INSTANT, MergedFile
from ingestion.spark.file_groups.direct_write import require_all_written
from ingestion.spark.file_groups.java_client import commit_client, java_list, java_map
from ingestion.spark.file_groups.many_rows.replace_commits import REPLACE, begin_replacing, file_ids_by_partition
from ingestion.spark.session import jvm
from ingestion.spark.tables.commit_failpoint import FAILPOINT
from ingestion.spark.tables.timeline import open_storage
from lakehub.kernel import failpoint


def replace_files(
    spark: SparkSession,
    table: TableSpec,
    replaced: Iterable[BaseFile],
    merged: Sequence[MergedFile],
    folder: str,
    avro_schema: str,
    options: Mapping[str, str],
    marks: Mapping[str, str],
) -> None:
    """One commit. `folder`: where the merged files lie. Raises RowsNotWritten."""
    java: Any = jvm(spark)
    require_all_written([file.status for file in merged], table)
    with commit_client(spark, table, avro_schema, options) as client:
        instant = client.startCommit(REPLACE)
        _put_in_place(java, client, table, merged, folder, instant)
        failpoint.reach(FAILPOINT)
        nothing = java.org.apache.hudi.common.util.Option.empty()
        metadata = java.org.apache.hudi.common.util.Option.of(java_map(java, marks))
        statuses, ids = java_list(java, [file.status for file in merged]), file_ids_by_partition(java, replaced)
        client.commit(instant, statuses, metadata, REPLACE, ids, nothing, nothing)


def _put_in_place(
    java: Any, client: Any, table: TableSpec, merged: Iterable[MergedFile], folder: str, instant: str
) -> None:
    hudi_java = java.org.apache.hudi
    hudi_table = begin_replacing(java, client, instant, "CLUSTER")
    markers = hudi_java.table.marker.WriteMarkersFactory.get(
        hudi_java.common.table.marker.MarkerType.DIRECT, hudi_table, instant
    )
    filesystem, target = open_storage(table.uri)
    source = open_storage(folder)[1]
    for file in merged:
        path = file.path.replace(f"_{STAGED_INSTANT}.", f"_{instant}.")
        markers.create(file.partition, path.rpartition("/")[2], hudi_java.common.model.IOType.CREATE)
        filesystem.move(f"{source}/{file.path}", f"{target}/{path}")
        file.status.getStat().setPath(path)
