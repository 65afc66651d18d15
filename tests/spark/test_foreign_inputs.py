"""Inputs of a pipeline that others write, by Hudi's own ways and not by Lakehub's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.pipelines.definition import INSERT_OVERWRITE
from ingestion.spark.contract.report import NOTHING_TO_DO
from ingestion.spark.etl.input_changes import problem_of_input
from ingestion.spark.tables import growing_time
from ingestion.spark.tables.timeline import Timeline
from tests.spark.pipeline_lake import NOTHING, InputTable, PipelineLake, pipeline_of

Row = tuple[Any, ...]
ORDERS = {"orders": InputTable({"id": "long", "day": "string", "amount": "long"}, ("id",), "day")}
SUMS = pipeline_of(
    "SELECT o.day, CAST(o.id % 2 AS STRING) AS half, sum(o.amount) AS amount FROM orders o GROUP BY o.day, CAST(o.id % 2 AS STRING)",
    {"day": "string", "half": "string", "amount": "long"},
    ("day", "half"),
    "orders",
    partition="day",
)
OTHERS: dict[str, str] = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "amount",
    "hoodie.metadata.enable": "false",
    "hoodie.write.table.version": "8",
    "hoodie.write.auto.upgrade": "false",
}
"""The defaults of Hudi's writer in Spark: folders are the values alone, and nothing of it is Lakehub's."""


def write(lake: PipelineLake, rows: list[Row], operation: str, **options: str) -> None:
    growing_time.go_on_after_latest(lake.spark, lake.uri("orders"))  # a session has it before its first commit
    frame = lake.spark.createDataFrame(rows, "id long, day string, amount long").coalesce(1)
    given = OTHERS | {"hoodie.datasource.write.operation": operation} | options
    frame.write.format("hudi").options(**given).mode("append").save(lake.uri("orders"))


def by_time(generator: str, fields: str) -> dict[str, str]:
    return {
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}KeyGenerator",
        "hoodie.datasource.write.partitionpath.field": fields,
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }


@pytest.mark.parametrize("operation", ["upsert", INSERT_OVERWRITE])
def test_what_others_write_is_followed_with_their_deletes(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    lake = PipelineLake(spark, tmp_path, ORDERS, {"wide": replace(SUMS, operation=operation)})
    write(lake, [(n, f"2026-11-0{1 + n % 4}", n) for n in range(40)], "bulk_insert")
    assert Timeline(lake.uri("orders")).properties["hoodie.table.version"] == "8"
    assert lake.run("bootstrap").error is None
    write(lake, [(0, "2026-11-01", 1_000), (100, "2026-11-05", 5)], "upsert")
    write(lake, [(n, "2026-11-02", n) for n in range(1, 40, 4)], "delete")
    write(lake, [(200, "2026-11-03", 7)], "insert_overwrite")
    report = lake.run("incremental")
    assert (report.error, report.output["inputs"]["orders"]["commits"]) == (None, 3)
    assert lake.differences("wide") == NOTHING
    assert {row["day"] for row in lake.stored("wide").collect()} == {"2026-11-01", "2026-11-03", "2026-11-04", "2026-11-05"}  # fmt: skip


def test_a_key_that_lies_in_two_partitions_changes_in_each(spark: SparkSession, tmp_path: Path) -> None:
    """By Hudi's defaults a key is that of its partition. Both rows are of one commit: what has changed in one is no change of the other."""
    lake = PipelineLake(spark, tmp_path, ORDERS, {"wide": SUMS})
    write(
        lake, [(1, "2026-11-01", 10), (1, "2026-11-02", 20), (2, "2026-11-01", 1), (2, "2026-11-02", 2)], "bulk_insert"
    )
    assert lake.run("bootstrap").error is None
    write(lake, [(1, "2026-11-01", 10)], "delete")
    write(lake, [(2, "2026-11-02", 200)], "upsert")
    assert lake.run("incremental").error is None
    assert lake.differences("wide") == NOTHING
    write(lake, [(2, "2026-11-01", 1)], "delete")
    assert lake.run("incremental").error is None
    assert {row["day"] for row in lake.stored("wide").collect()} == {"2026-11-02"}


def test_a_table_with_logs_is_read_as_a_whole_when_it_has_changed(spark: SparkSession, tmp_path: Path) -> None:
    """Not when its logs were put into its files."""
    logs = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    lake = PipelineLake(spark, tmp_path, ORDERS, {"wide": SUMS})
    write(lake, [(n, f"2026-11-0{1 + n % 2}", n) for n in range(10)], "insert", **logs)
    assert lake.run("bootstrap").error is None
    write(lake, [(0, "2026-11-01", 1_000)], "upsert", **logs)
    assert [*(tmp_path / "lake" / "orders").rglob(".*.log.*")]
    report = lake.run("incremental")
    assert (report.error, "keeps its changes in logs" in report.output["made_anew"]) == (None, True)
    assert lake.differences("wide") == NOTHING
    compact = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    write(lake, [(3, "2026-11-02", 2_000)], "upsert", **logs, **compact)
    assert "made_anew" in lake.run("incremental").output
    assert lake.differences("wide") == NOTHING
    assert lake.run("incremental").status == NOTHING_TO_DO


def test_tables_whose_changes_cannot_be_seen_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """By what Hudi itself writes for them."""
    kinds = {
        "old": ({"hoodie.write.table.version": "6"}, "table version 6"),
        "dropped": ({"hoodie.datasource.write.drop.partition.columns": "true"}, "in the names of folders alone"),
        "bare": ({"hoodie.populate.meta.fields": "false"}, "keeps no `_hoodie_` columns"),
        "timed": (by_time("TimestampBased", "amount"), "`amount`, a long whose folders are named by a time"),
        "custom": (by_time("Custom", "amount:timestamp"), "`amount`, a long whose folders are named by a time"),
    }
    for name, (options, expected) in kinds.items():
        lake = PipelineLake(spark, tmp_path / name, ORDERS, {"wide": SUMS})
        write(lake, [(1, "2026-11-01", 1)], "insert", **options)
        assert expected in problem_of_input(lake.uri("orders"))
        assert expected in str(lake.run("bootstrap").error)
        assert not Timeline(lake.uri("wide")).exists


@pytest.mark.parametrize("damage", [b"", b"no Avro"])
def test_a_damaged_timeline_fails_the_run_with_the_input_the_file_and_what_to_do(
    spark: SparkSession, tmp_path: Path, damage: bytes
) -> None:
    """And nothing is lost by it: once the file is restored the next run has what it says."""
    lake = PipelineLake(spark, tmp_path, ORDERS, {"wide": SUMS})
    write(lake, [(n, f"2026-11-0{1 + n % 2}", n) for n in range(10)], "bulk_insert")
    assert lake.run("bootstrap").error is None
    write(lake, [(0, "2026-11-01", 1_000)], "upsert")
    newest = Timeline(lake.uri("orders")).completed()[-1]
    file = tmp_path / "lake" / "orders" / ".hoodie" / "timeline" / newest.name
    content = file.read_bytes()
    file.write_bytes(damage)
    report = lake.run("incremental")
    assert f"The timeline of the input `orders` at {lake.uri('orders')} is damaged. The file {file.as_uri()} cannot be read: " in str(report.error)  # fmt: skip
    assert "Restore that file from a backup, or have the table rebuilt by whoever writes it" in str(report.error)
    file.write_bytes(content)
    assert lake.run("incremental").error is None
    assert lake.differences("wide") == NOTHING
