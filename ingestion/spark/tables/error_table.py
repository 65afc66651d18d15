"""A dataset's error table: the rows that did not fit, each with the reason, once."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata

_OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "GLOBAL_SIMPLE",
}


def error_table_spec(table: TableSpec) -> TableSpec:
    """A Hudi table too. Its key names the row by what was read, so reading the row again writes the same error, not one more."""
    return TableSpec(
        name=f"{table.name}_errors",
        uri=table.error_uri,
        error_uri=table.error_uri,
        record_key=("error_key",),
        retention_hours=table.retention_hours,
    )


def write_errors(spark: SparkSession, table: TableSpec, staged_uri: str, *, run_id: str, read_at: datetime) -> None:
    rows = spark.read.parquet(staged_uri).select(
        "error_key",
        "column",
        "reason",
        "raw",
        "source",
        F.nullif(F.lit(run_id), F.lit("")).alias("run"),
        F.lit(read_at).cast("timestamp").alias("read_at"),
    )
    hudi.write_commit(
        rows,
        error_table_spec(table),
        "upsert",
        _OPTIONS,
        commit_metadata(run={"run_id": run_id, "kind": "errors"}, checkpoint=None),
    )
