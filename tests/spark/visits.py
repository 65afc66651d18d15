"""Visits with nested columns, in files of a folder; their table in a lake, and the jobs between them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec, SourceSpec, TableSpec
from ingestion.spark.execute import execute
from tests.spark.order_shop import read


class Visits:
    """The key is (id, day), a partition is a day, the reference key is `at`; files are read in the order of their names."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self.inbox = folder / "in"
        self.inbox.mkdir()
        self._secrets = {"INBOX": self.inbox.as_uri()}
        self._source = SourceSpec(plugin="files", url_ref="env:INBOX", object=pattern)
        self.table = TableSpec(
            name="visits",
            uri=(folder / "lake" / "visits").as_uri(),
            error_uri=(folder / "lake" / "_errors" / "visits").as_uri(),
            record_key=("id", "day"),
            reference_key="at",
            partition_column="day",
        )

    def add_json(self, name: str, *rows: Mapping[str, Any]) -> None:
        (self.inbox / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def add_parquet(self, name: str, rows: pa.Table) -> None:
        pq.write_table(rows, self.inbox / name)

    def run(self, spark: SparkSession, kind: str, run: str, **fields: Any) -> JobReport:
        spec = JobSpec(run_id=run, kind=kind, source=self._source, table=self.table, lock_wait_s=30.0, **fields)
        report = execute(spec, spark=spark, secrets=self._secrets)
        assert report.error is None
        return report

    def rows(self, spark: SparkSession, column: str) -> dict[int, Any]:
        """By the id of the visit: the value of one column as Python has it."""
        stored = read(spark, self.table.uri).select("id", column).collect()
        return {row["id"]: row.asDict(recursive=True)[column] for row in stored}
