"""The Spark job reads the same lineage from events as the source without Spark, whatever they are kept in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from ingestion.spark.execute import execute
from ingestion.spark_lineage import SparkLineageSource
from lakehub.catalog.lineage import LineageSnapshot, LineageUnavailable, TableLink, TableName
from lakehub.catalog.lineage.events import snapshot_of_events
from tests import hudi_tables
from tests.factories import DAY, HOUR, NOW
from tests.lineage_events import event, table

EVENTS: list[dict[str, Any]] = [
    # The newest run that completed counts: `old` is no input any more, `half` never ended.
    event("load", NOW - DAY, [table("ops/old"), table("ops/flights")], [table("lake/flights")]),
    event("load", NOW - 2 * HOUR, [table("ops/flights", one_to_one=True)], kind="START", run="r2"),
    event("load", NOW - HOUR, [], [table("lake/flights")], run="r2"),
    event("load", NOW, [table("ops/half")], [table("lake/flights")], kind="START", run="r3"),
    # Two inputs and two outputs are four edges; a table is not made from itself.
    event("join", NOW - HOUR, [table("lake/flights"), table("lake/a")], [table("lake/a"), table("lake/b")]),
    # What did not run for a month makes nothing.
    event("gone", NOW - 31 * DAY, [table("lake/a")], [table("lake/z")]),
    # Dropped after it was written: out, with its edges. Dropped before: back again.
    event("make", NOW - 3 * HOUR, [table("lake/b")], [table("lake/c"), table("lake/d")]),
    event("clean", NOW - 2 * HOUR, [], [table("lake/c", dropped=True)]),
    event("clear", NOW - 4 * HOUR, [], [table("lake/d", dropped=True)]),
]


def link(pair: str, one_to_one: bool = False) -> TableLink:
    up, down = (TableName(*name.split("/")) for name in pair.split(">"))
    return TableLink(up, down, one_to_one)


EXPECTED = LineageSnapshot(
    links=frozenset(
        {
            link("ops/flights>lake/flights", True),
            link("lake/flights>lake/a"),
            link("lake/flights>lake/b"),
            link("lake/a>lake/b"),
            link("lake/b>lake/d"),
        }
    ),
    dropped=frozenset({TableName("lake", "c")}),
)


def lines(folder: Path, events: list[dict[str, Any]]) -> None:
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, events[:4])))
    (folder / "deeper").mkdir()
    (folder / "deeper" / "b.json").write_text(json.dumps(events[4:], indent=1))
    (folder / "c.json").write_text(json.dumps(events[0]))


def parquet(folder: Path, events: list[dict[str, Any]]) -> None:
    pq.write_table(pa.table({"event": [json.dumps(event) for event in events]}), folder / "events.parquet")


def hudi(folder: Path, events: list[dict[str, Any]]) -> None:
    hudi_tables.hudi_table(
        folder / "lineage", {None: pa.table({"event": [json.dumps(event) for event in events]})}, key="event"
    )


class Here:
    """A launcher on the session of the tests."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(
        self, spec: JobSpec, secrets: Mapping[str, str], lease: WriteLease | None = None, guidance: object = None
    ) -> JobReport:
        return execute(JobSpec.from_json(spec.to_json()), spark=self._spark, secrets=secrets, lease=lease)

    def progress(self, run_id: str) -> JobProgress | None:
        return None

    def close(self) -> None:
        """The session is not ours."""


def test_without_spark_the_newest_lineage_is_the_same() -> None:
    assert snapshot_of_events(EVENTS, now=NOW) == EXPECTED


@pytest.mark.parametrize("keep", [lines, parquet, hudi])
def test_the_newest_lineage_is_read_whatever_keeps_the_events(
    spark: SparkSession, tmp_path: Path, keep: Callable[[Path, list[dict[str, Any]]], None]
) -> None:
    keep(tmp_path, EVENTS)
    at = tmp_path / "lineage" if keep is hudi else tmp_path
    assert SparkLineageSource(at.as_uri(), Here(spark)).read(now=NOW) == EXPECTED
    assert not (at.parent / ".lakehub").exists(), "a job that only reads takes no lock"


def test_what_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    source = SparkLineageSource(tmp_path.as_uri(), Here(spark))
    with pytest.raises(LineageUnavailable, match="There are no events at"):
        source.read(now=NOW)
    (tmp_path / "bad.jsonl").write_text('{"eventType": "COMPLETE"}')
    with pytest.raises(LineageUnavailable, match=r"This is no lineage event: \{\"eventType\""):
        source.read(now=NOW)
