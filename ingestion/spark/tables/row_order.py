"""The order of rows in the files of a first load: by partition, then by key.

Sorting all of them reads them twice, the first time to learn where to cut. Where no partition is large, each is gathered in one task
instead and sorted there: the same order in each file, and the rows are read once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import define_beside
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.session import jvm

PARTITIONS_A_CORE, MAX_SHARE_OF_A_CORE = 8, 0.5
"""With fewer or larger ones some cores would have nothing to do while others work."""
_NEIGHBOUR = "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner"
_GATHERED = "org.apache.hudi.execution.bulkinsert.LakehubGatheredRows"
_SOURCE = r"""
package org.apache.hudi.execution.bulkinsert;

import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.table.BulkInsertPartitioner;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;

public class LakehubGatheredRows implements BulkInsertPartitioner {
    /** So that one with larger partitions than others keeps nobody waiting. */
    private static final int PARTS = 4;

    public LakehubGatheredRows(HoodieWriteConfig config) {}

    public Object repartitionRecords(Object rows, int tasks) {
        Column partition = new Column(HoodieRecord.PARTITION_PATH_METADATA_FIELD);
        Column key = new Column(HoodieRecord.RECORD_KEY_METADATA_FIELD);
        Dataset gathered = ((Dataset) rows).repartition(tasks * PARTS, new Column[] {partition});
        return gathered.sortWithinPartitions(new Column[] {partition, key});
    }

    public boolean arePartitionRecordsSorted() {
        return true;
    }
}
"""


def order_options(
    spark: SparkSession, table: TableSpec, rows_by_partition: Mapping[str, int] | None, row_bytes: int
) -> dict[str, str]:
    """For `bulk_insert` of these rows; none where all are to be sorted. `row_bytes`: of all rows in memory."""
    cores = spark.sparkContext.defaultParallelism
    if not can_be_gathered(rows_by_partition, row_bytes, max_file_bytes=table.max_file_mib * 2**20, cores=cores):
        return {}
    java: Any = jvm(spark)
    define_beside(java, _NEIGHBOUR, _SOURCE, marker="lakehub.gathered-rows")
    return {"hoodie.bulkinsert.user.defined.partitioner.class": _GATHERED}


def can_be_gathered(
    rows_by_partition: Mapping[str, int] | None, row_bytes: int, *, max_file_bytes: int, cores: int
) -> bool:
    """Has each core several partitions to write, each of one file? `rows_by_partition` None: there are too many to name."""
    if rows_by_partition is None or len(rows_by_partition) < PARTITIONS_A_CORE * cores:
        return False
    share = max(rows_by_partition.values()) / sum(rows_by_partition.values())
    return share * row_bytes <= max_file_bytes and share <= MAX_SHARE_OF_A_CORE / cores
