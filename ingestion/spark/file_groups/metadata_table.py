"""Hudi's metadata table, which holds the record index: its entries, and how it is compacted, removed and made anew.

After a load its entries lie in logs, of which each look-up reads as much as there is; compacted, a look-up reads a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.lookups import meta_client, storage_configuration
from ingestion.spark.session import jvm
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline

_RECORD_INDEX = 5
"""Of the metadata table's records, the type that holds where a key lies."""
_AS_TEXT, _NO_FILE_INDEX = 1, -1
"""How a file id is written: as it is, or as a UUID in two numbers with a number behind it, unless there is none."""


def compact_metadata_table(spark: SparkSession, table: TableSpec, options: Mapping[str, str]) -> None:
    """By Spark, several files at a time. Otherwise the tenth small commit did it, in one thread. The caller holds the table's fence."""
    with _metadata_writer(spark, table, {**options, "hoodie.metadata.compact.max.delta.commits": "1"}) as writer:
        writer.performTableServices(jvm(spark).org.apache.hudi.common.util.Option.empty())


def build_metadata_table(spark: SparkSession, table: TableSpec, options: Mapping[str, str]) -> None:
    """From all base files, by Spark, where there is none. The caller holds the table's fence."""
    with _metadata_writer(spark, table, options):
        pass  # to open it is to build what is missing


def remove_metadata_table(spark: SparkSession, uri: str) -> None:
    """The caller holds the table's fence. What is read until it is built again, is listed."""
    java: Any = jvm(spark)
    engine = java.org.apache.hudi.client.common.HoodieSparkEngineContext(spark.sparkContext._jsc)
    java.org.apache.hudi.metadata.HoodieTableMetadataUtil.deleteMetadataTable(meta_client(spark, uri), engine, False)


def record_index_entries(spark: SparkSession, uri: str) -> DataFrame:
    """`key`, `partition` and `file_id` of each entry of the record index."""
    records = spark.read.format("hudi").load(f"{uri}/.hoodie/metadata").where(F.col("type") == _RECORD_INDEX)
    location = F.col("recordIndexMetadata")
    return records.select("key", location["partitionName"].alias("partition"), _file_id(location).alias("file_id"))


def _file_id(location: Column) -> Column:
    digits = F.concat(
        *(F.lpad(F.lower(F.hex(location[name])), 16, "0") for name in ("fileIdHighBits", "fileIdLowBits"))
    )
    uuid = F.regexp_replace(digits, "(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5")
    number = F.when(location["fileIndex"] != _NO_FILE_INDEX, F.concat(F.lit("-"), location["fileIndex"].cast("string")))
    return F.when(location["fileIdEncoding"] == _AS_TEXT, location["fileId"]).otherwise(
        F.concat(uuid, F.coalesce(number, F.lit("")))
    )


@contextmanager
def _metadata_writer(spark: SparkSession, table: TableSpec, options: Mapping[str, str]) -> Iterator[Any]:
    java: Any = jvm(spark)
    hudi_java, context = java.org.apache.hudi, spark.sparkContext
    properties = java.java.util.HashMap()
    for name, value in {**hudi.table_options(table, parallelism=context.defaultParallelism), **options}.items():
        properties.put(name, value)
    config = hudi_java.config.HoodieWriteConfig.newBuilder().withPath(table.uri).forTable(table.name)
    config = config.withSchema(
        next(commit.avro_schema for commit in Timeline(table.uri).newest_first() if commit.avro_schema)
    )
    engine = hudi_java.client.common.HoodieSparkEngineContext(context._jsc)
    writer = hudi_java.metadata.SparkHoodieBackedTableMetadataWriter.create(
        storage_configuration(spark), config.withProps(properties).build(), engine, hudi_java.common.util.Option.empty()
    )
    try:
        yield writer
    finally:
        writer.close()
