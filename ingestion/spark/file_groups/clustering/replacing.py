"""Merged files take the place of those that they were made from: one commit within the table's fence, without a Spark job.

Each file is put on record in the table's markers before it is moved there, so that a commit that did not end takes them away again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.clustering.merged_files import STAGED_INSTANT, MergedFile
from ingestion.spark.file_groups.direct_write import require_all_written
from ingestion.spark.file_groups.java_client import commit_client, java_list, java_map
from ingestion.spark.session import jvm
from ingestion.spark.tables.commit_failpoint import FAILPOINT
from ingestion.spark.tables.timeline import open_storage
from lakehub.kernel import failpoint

REPLACE = "replacecommit"
"""The action of a commit by which file groups are replaced."""


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


def begin_replacing(java: Any, client: Any, instant: str, operation: str) -> Any:
    """Hudi's view of the table. `operation`: as Hudi calls it."""
    hudi_java = java.org.apache.hudi
    hudi_table = hudi_java.table.HoodieJavaTable.create(client.getConfig(), client.getEngineContext())
    states = java.java.lang.Class.forName(
        "org.apache.hudi.common.table.timeline.HoodieInstant$State", True, hudi_table.getClass().getClassLoader()
    )
    # With the commits that are there now: those that come after would be conflicts.
    kind = getattr(hudi_java.common.model.WriteOperationType, operation)
    client.preWrite(instant, kind, hudi_table.getMetaClient())
    requested = hudi_table.getMetaClient().createNewInstant(states.getEnumConstants()[0], REPLACE, instant)
    hudi_table.getActiveTimeline().transitionReplaceRequestedToInflight(requested, hudi_java.common.util.Option.empty())
    return hudi_table


def file_ids_by_partition(java: Any, files: Iterable[BaseFile]) -> Any:
    ids: dict[str, list[str]] = defaultdict(list)
    for file in files:
        ids[file.group.partition].append(file.group.file_id)
    by_partition = java.java.util.HashMap()
    for partition, those in ids.items():
        by_partition.put(partition, java_list(java, those))
    return by_partition
