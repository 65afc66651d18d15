"""A table of MariaDB that is tapped, the log, and the jobs that bring its rows and their changes into a lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ingestion.capture.tap.position import emptied_before
from ingestion.changelog import CHANGELOGS, ChangelogConfig, Outgoing
from ingestion.heatpipe.broken_message import Defect
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import KnownSchemas
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.spark.contract.guidance import Guidance, NoGuidance
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec, SourceSpec, TableSpec
from ingestion.spark.execute import execute
from ingestion.spark.tables.timeline import Timeline
from tests.services.tapped_server import TappedServer
from tests.spark.order_shop import read

SECRET = "SHOP_URL"


class PausedAfterEach(NoGuidance):
    """A load ends after each of its commits."""

    def is_paused(self) -> bool:
        return True


@dataclass
class CapturedShop:
    """`name`: of the table, its topic and its dataset. `told`: how much later than now jobs were told of the registry."""

    server: TappedServer
    folder: Path
    name: str
    record_key: tuple[str, ...] = ("id",)
    index: str = "memory"
    plugin: str = "mysql"
    options: Mapping[str, str] = field(default_factory=dict)
    told: timedelta = timedelta()
    said_of_table: str = ""
    """Behind its name, in the feed."""
    log_url: str = ""
    """Of the changelog; empty: the tap's."""
    table: TableSpec = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        lake, self.server.versions.keeps = self.folder / "lake", True
        self.table = TableSpec(
            name=self.name,
            uri=(lake / self.name).as_uri(),
            error_uri=(lake / "_errors" / self.name).as_uri(),
            tombstone_uri=(lake / "_tombstones" / self.name).as_uri(),
            record_key=self.record_key,
            index=self.index,
        )

    @property
    def topic(self) -> EventTopic:
        schemas = tuple(schema for schema, _ in self.server.versions.known if schema.subject == self.name)
        return EventTopic(
            "segments",
            self.log_url or self.server.log_url,
            self.name,
            schemas,
            KnownSchemas(len(self.server.versions.known), datetime.now(UTC) + self.told),
            renames=self.server.versions.notes_of(self.name).column_renames(),
            emptied=emptied_before(self.server.versions.emptied.get(self.name, 0)),
            accepted=max((schema.version for schema in schemas), default=0),
        )

    def spec(self, kind: str, **fields: Any) -> JobSpec:
        self.runs += 1
        source = SourceSpec(
            plugin=self.plugin,
            url_ref=f"env:{SECRET}",
            object=f"{self.server.database}.{self.name}{self.said_of_table}",
            options={**self.topic.as_options(), **self.options},
            **fields.pop("limits", {}),
        )
        return JobSpec(run_id=f"{kind}-{self.runs}", kind=kind, table=self.table, source=source, **fields)

    def run(self, spark: SparkSession, kind: str, guidance: Guidance | None = None, **fields: Any) -> JobReport:
        report = self.tried(spark, kind, guidance, **fields)
        assert report.error is None, report.error
        return report

    def tried(
        self, spark: SparkSession, kind: str, guidance: Guidance | None = None, url: str = "", **fields: Any
    ) -> JobReport:
        """`url`: of the source; empty: the server's."""
        url = url or self.server.url.render_as_string(hide_password=False)
        return execute(self.spec(kind, **fields), spark=spark, secrets={SECRET: url}, guidance=guidance)

    def follow(self, spark: SparkSession, **options: Any) -> JobReport:
        """The tap takes what was changed by now, and a job brings it into the lake."""
        self.server.take(self.name, **options)
        return self.run(spark, "incremental")

    @property
    def timeline(self) -> Timeline:
        return Timeline(self.table.uri)

    def write(self, topic: str, *messages: bytes) -> None:
        """To the changelog, by nobody's tap."""
        config = ChangelogConfig(self.log_url, 86_400.0, lambda: datetime.now(UTC))
        outgoing = [Outgoing(topic, b"", message) for message in messages]
        CHANGELOGS.get("segments")(config).writer("somebody").commit(outgoing, {})

    def write_error(self, row: dict[str, Any]) -> None:
        """A new row that could not be encoded, to the tap's changelog."""
        unencoded = UnencodedRow("0-1-99999999", 0, Defect.TYPE, "note", "no text", None, row)
        self.server.write(f"{self.name}.errors", unencoded.to_json())

    def rejected(self, spark: SparkSession) -> list[Any]:
        return list(read(spark, self.table.error_uri).collect())

    def in_lake(self, spark: SparkSession) -> dict[Any, dict[str, Any]]:
        rows = [row.asDict(recursive=True) for row in read(spark, self.table.uri).collect()]
        plain = [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]
        return {tuple(row[name] for name in self.record_key): row for row in plain}

    def in_source(self) -> dict[Any, dict[str, Any]]:
        """A DATETIME is kept as if it were in UTC; Spark hands times over in the zone of the session, without it."""
        rows = self.server.all_rows(self.name)
        return {tuple(row[name] for name in self.record_key): row for row in rows}

    def with_history(self, **fields: Any) -> CapturedShop:
        uri = (self.folder / "lake" / "_history" / self.name).as_uri()
        return self.with_table(history_uri=uri, keeps_history=True, **fields)

    def with_table(self, **fields: Any) -> CapturedShop:
        self.table = replace(self.table, **fields)
        return self
