"""A topic of somebody else's Kafka in the lake: a load without rows, and then all by its messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ingestion.changelog import CHANGELOGS, Changelog, ChangelogConfig
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import KnownSchemas
from ingestion.spark.changes.tombstones import read_tombstones
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec, ReplaySpec, SourceSpec, TableSpec
from ingestion.spark.execute import execute
from tests.spark.order_shop import SECRET, read
from tests.unit.ingestion.capture.topic_tapping import ORDERS, TopicTapping

PRODUCER = "tap:kafka:test:9092"


@dataclass
class TopicInLake:
    """`load`: of the capture, which begins where the changelog was then (`begins_at`)."""

    folder: Path
    load: int = 1
    begins_at: dict[str, dict[str, int]] = field(default_factory=dict)
    tapping: TopicTapping = field(default_factory=lambda: TopicTapping(has_message_key=True))
    runs: int = 0

    @property
    def log(self) -> Changelog:
        return CHANGELOGS.get("segments")(ChangelogConfig(self.log_url, 86_400.0, lambda: datetime.now(UTC)))

    @property
    def log_url(self) -> str:
        return (self.folder / "log").as_uri()

    @property
    def table(self) -> TableSpec:
        lake = self.folder / "lake"
        return TableSpec(
            name=ORDERS,
            uri=(lake / ORDERS).as_uri(),
            error_uri=(lake / "_errors" / ORDERS).as_uri(),
            tombstone_uri=(lake / "_tombstones" / ORDERS).as_uri(),
            record_key=("id",),
            index="memory",
        )

    def take(self) -> None:
        """A process of the tap takes what is there by now."""
        self.tapping.writer = self.log.writer(PRODUCER)
        self.tapping.take()

    def load_again(self) -> None:
        """As the tap does it: the topic is read from its beginning on."""
        end = EventTopic("segments", self.log_url, ORDERS).end()
        self.begins_at = {name: dict(offsets) for name, offsets in end.items()}
        self.load += 1
        self.tapping.writer = self.log.writer(PRODUCER)
        self.tapping.take(replace(self.tapping.place(), next=dict.fromkeys(self.tapping.place().next, 0)))

    def run(self, spark: SparkSession, kind: str, **fields: Any) -> JobReport:
        self.runs += 1
        schemas = tuple(schema for schema, _ in self.tapping.versions.known)
        known = KnownSchemas(len(schemas), datetime.now(UTC))
        topic = EventTopic("segments", self.log_url, ORDERS, schemas, known, load=self.load, begins_at=self.begins_at)
        source = SourceSpec(plugin="kafka", url_ref=f"env:{SECRET}", object="shop.orders", options=topic.as_options())
        spec = JobSpec(run_id=f"{kind}-{self.runs}", kind=kind, table=self.table, source=source, **fields)
        report = execute(spec, spark=spark, secrets={SECRET: "kafka://nobody"})
        assert report.error is None, report.error
        return report

    def rows(self, spark: SparkSession) -> dict[Any, tuple[Any, ...]]:
        rows = [row.asDict(recursive=True) for row in read(spark, self.table.uri).collect()]
        return {
            row["id"]: tuple(
                value for name, value in row.items() if name[0] != "_" and name not in ("id", "message_key")
            )
            for row in rows
        }


def test_a_topic_comes_into_the_lake_and_is_read_again_from_its_beginning(spark: SparkSession, tmp_path: Path) -> None:
    orders = TopicInLake(tmp_path)
    send = orders.tapping.topic.send
    send("1", {"id": 1, "city": "Ulm", "lines": [{"n": 1}]})
    send("2", {"id": 2, "city": "Köln"})
    send("3", b"no JSON")
    orders.take()
    loaded = orders.run(spark, "bootstrap")
    assert (loaded.counts.read, orders.rows(spark)) == (0, {})
    followed = orders.run(spark, "incremental")
    assert (followed.counts.read, followed.counts.applied, followed.counts.errors) == (3, 2, 1)
    assert orders.rows(spark) == {1: ("Ulm", '[{"n": 1}]'), 2: ("Köln", None)}

    send("1", {"id": 1, "city": "Bonn", "fare": 2.5})
    send("2", None)
    send("4", {"id": 4, "city": 7})
    orders.take()
    assert orders.run(spark, "incremental").counts.errors == 0
    assert orders.rows(spark) == {1: ("Bonn", None, 2.5), 4: ("7", None, None)}
    assert read_tombstones(spark, orders.table, ["2"]).states.keys() == {"2"}
    assert orders.run(spark, "incremental").status == "nothing_to_do"

    (error,) = read(spark, orders.table.error_uri).collect()
    assert "broken message (corrupt): The value is not JSON" in error["reason"]
    assert "partition 0, offset 2" in error["reason"]
    fixes = {error["error_key"]: json.dumps({"id": 3, "city": "Hof"})}
    assert orders.run(spark, "replay", replay=ReplaySpec(tuple(fixes), "ana", fixes)).counts.applied == 1
    assert orders.run(spark, "incremental").counts.errors == 0
    assert orders.rows(spark)[3] == ("Hof", None, None)

    orders.load_again()
    orders.run(spark, "bootstrap", replace=True)
    assert orders.rows(spark) == {}
    orders.run(spark, "incremental")
    assert orders.rows(spark) == {1: ("Bonn", None, 2.5), 4: ("7", None, None)}
    send("4", {"id": 4, "city": "Ulm"})
    orders.take()
    orders.run(spark, "incremental")
    assert orders.rows(spark) == {1: ("Bonn", None, 2.5), 4: ("Ulm", None, None)}
