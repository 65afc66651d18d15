"""A launcher of jobs on the session that all tests of this folder share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from ingestion.spark.execute import execute


@dataclass
class SharedSession:
    spark: SparkSession

    def run(
        self, spec: JobSpec, secrets: Mapping[str, str], lease: WriteLease | None = None, guidance: object = None
    ) -> JobReport:
        return execute(spec, spark=self.spark, secrets=secrets, lease=lease)

    def progress(self, run_id: str) -> JobProgress | None:
        return None

    def close(self) -> None:
        """It is not ours to close."""
