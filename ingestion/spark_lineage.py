"""Lineage by a Spark job, for more events than one process should read: files or a table in the lake."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from ingestion.launchers import Launcher
from ingestion.launchers.configured import configured_launcher
from ingestion.spark.contract.report import FAILED
from ingestion.spark.contract.spec import JobSpec, TableSpec
from lakehub.catalog.lineage import WINDOW_DAYS, LineageSnapshot, LineageUnavailable, TableLink, TableName

DEADLINE_S = 1800.0


class SparkLineageSource:
    """`uri`: a Hudi table or Parquet files with the events as JSON text in the column `event`, or event files."""

    def __init__(self, uri: str, by: Launcher | None = None) -> None:
        self._uri = uri
        self._by = by

    def read(self, *, now: datetime) -> LineageSnapshot:
        spec = JobSpec(
            run_id=str(uuid4()),
            kind="lineage",
            table=TableSpec(name="lineage", uri=self._uri, error_uri=self._uri, record_key=("run",)),
            upto=now.isoformat(),
            window_days=WINDOW_DAYS,
            deadline_s=DEADLINE_S,
        )
        report = (self._by or configured_launcher()).run(spec, {})
        if report.status == FAILED:
            raise LineageUnavailable(f"The job that reads lineage from {self._uri} failed: {report.error}")
        links = (
            TableLink(TableName(*link["upstream"]), TableName(*link["downstream"]), bool(link["one_to_one"]))
            for link in report.output["links"]
        )
        return LineageSnapshot(frozenset(links), frozenset(TableName(*table) for table in report.output["dropped"]))
