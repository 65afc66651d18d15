"""No index at all: the stored rows of the partitions touched are read, and tell where each key lives.

Quickest for tables of a few million rows (docs/ingestion.md has the numbers): there is no metadata table to keep up.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.tables.batch_keys import BatchKeys
from ingestion.spark.tables.hudi import read_table
from ingestion.spark.tables.record_locations import key_determines_partition


class SimpleIndex:
    def write_options(self, table: TableSpec) -> dict[str, str]:
        options = {"hoodie.metadata.enable": "false"}
        if key_determines_partition(table):
            return options | {"hoodie.index.type": "SIMPLE"}
        return options | {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        return batch.in_partitions(read_table(spark, table))
