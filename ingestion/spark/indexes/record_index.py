"""Hudi's own record index, in the metadata table: for tables that are too large to be read for each batch.

It knows where each key lives. So where a key does not say its partition only the partitions are read that hold keys of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.session import jvm
from ingestion.spark.tables.batch_keys import BatchKeys
from ingestion.spark.tables.hudi import has_metadata_table, read_table
from ingestion.spark.tables.record_locations import key_determines_partition
from ingestion.spark.tables.timeline import Timeline


class RecordIndex:
    def write_options(self, table: TableSpec) -> dict[str, str]:
        return {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.record.index.update.partition.path": "true",
        }

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        rows = read_table(spark, table)
        if table.partition_column is None or key_determines_partition(table):
            return batch.in_partitions(rows)
        if not _is_built(table) or batch.named is None:
            return rows
        paths = partitions_of_keys(spark, table, batch.named)
        return rows.where(F.col(table.partition_column).isin(*(path.partition("=")[2] for path in paths)))


def partitions_of_keys(spark: SparkSession, table: TableSpec, keys: Sequence[str]) -> set[str]:
    """The paths of the partitions in which the keys lie, as the index has them. Asked in this JVM: no Spark job."""
    java: Any = jvm(spark)
    hudi = java.org.apache.hudi
    storage = hudi.storage.hadoop.HadoopStorageConfiguration(spark._jsc.hadoopConfiguration())
    client = (
        hudi.common.table.HoodieTableMetaClient.builder().setConf(storage.newInstance()).setBasePath(table.uri).build()
    )
    config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
    engine = hudi.common.engine.HoodieLocalEngineContext(storage)
    metadata = hudi.metadata.HoodieBackedTableMetadata(engine, client.getStorage(), config, table.uri)
    try:
        asked = java.java.util.ArrayList()
        for key in keys:
            asked.add(key)
        pairs = metadata.readRecordIndexLocationsWithKeys(hudi.common.data.HoodieListData.eager(asked)).collectAsList()
        return {pairs.get(place).getValue().getPartitionPath() for place in range(pairs.size())}
    finally:
        metadata.close()


def _is_built(table: TableSpec) -> bool:
    """The next commit builds it where the table was written without."""
    return has_metadata_table(table.uri) and "record_index" in Timeline(table.uri).properties.get(
        "hoodie.table.metadata.partitions", ""
    ).split(",")
