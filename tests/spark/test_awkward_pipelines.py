"""Pipelines over values that tables of the lake have seldom: the target equals a full recomputation, or the rows are refused by name before anything is written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.pipelines.definition import PipelineDefinition
from tests.spark.pipeline_lake import NOTHING, InputTable, PipelineLake, pipeline_of

SALES = InputTable({"id": "long", "day": "string", "amount": "decimal(12,2)"}, ("id",))
PLAIN, FAR = ("2013-01-01", "2013-01-02"), ("0001-01-01", "+12013-01-01")
"""Days: Python has no year 12013, and does not write 1 in four digits."""


def lake_of(spark: SparkSession, folder: Path, table: InputTable, *pipelines: PipelineDefinition) -> PipelineLake:
    return PipelineLake(spark, folder, {"sales": table}, {each.name: each for each in pipelines})


def check_equal(lake: PipelineLake, kind: str, **reported: str) -> None:
    for name in lake.pipelines:
        report = lake.run(kind, name)
        assert (report.status, report.error) == ("succeeded", None), name
        assert {fact: report.output.get(fact) for fact in reported} == reported, name
        assert lake.stored(name).exceptAll(lake.recomputed(name)).isEmpty(), name
        assert lake.recomputed(name).exceptAll(lake.stored(name)).isEmpty(), name


def test_a_table_has_days_and_decimals_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Of days as keys Hudi is told which rows go by a value that no row has."""
    sums = "SELECT CAST(day AS DATE) AS day, sum(amount) AS amount FROM sales GROUP BY CAST(day AS DATE)"
    columns = {"day": "date", "amount": "decimal(22,2)"}
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(sums, columns, ("day",), "sales"))
    lake.put("sales", [(n, day, Decimal(n)) for n, day in enumerate(PLAIN * 2)])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(0, PLAIN[0], Decimal("7.50")), *((10 + n, day, Decimal(1)) for n, day in enumerate(FAR))])
    check_equal(lake, "incremental")
    lake.remove("sales", [(n, "", Decimal(0)) for n in (1, 3, 11)])
    check_equal(lake, "incremental")


def test_rows_come_and_go_in_partitions_that_are_days(spark: SparkSession, tmp_path: Path) -> None:
    days = "SELECT id, CAST(day AS DATE) AS day FROM sales"
    lake = lake_of(spark, tmp_path, SALES, pipeline_of(days, {"id": "long", "day": "date"}, ("id",), "sales", partition="day"))  # fmt: skip
    lake.put("sales", [(n, day, Decimal(n)) for n, day in enumerate(PLAIN * 2)])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(0, PLAIN[1], Decimal(0)), (10, "1969-12-31", Decimal(0)), (11, FAR[0], Decimal(0))])
    check_equal(lake, "incremental")
    lake.put("sales", [(10, FAR[1], Decimal(0))])
    check_equal(lake, "incremental")


@pytest.mark.parametrize(
    ("before", "now", "value", "later"),
    [("int", "double", 5, 7.5), ("decimal(10,2)", "decimal(12,4)", Decimal("1.50"), Decimal("2.25"))],
)
def test_a_column_with_a_wider_type_may_change_rows_that_stay(
    spark: SparkSession, tmp_path: Path, before: str, now: str, value: object, later: object
) -> None:
    texts = pipeline_of("SELECT CAST(v AS STRING) AS v, count(*) AS n FROM sales GROUP BY CAST(v AS STRING)", {"v": "string", "n": "long"}, ("v",), "sales")  # fmt: skip
    others = pipeline_of("SELECT id FROM sales", {"id": "long"}, ("id",), "sales", name="others")
    lake = lake_of(spark, tmp_path, InputTable({"id": "long", "v": before}, ("id",)), texts, others)
    lake.put("sales", [(n, value) for n in range(4)])
    check_equal(lake, "bootstrap")
    lake.tables = {"sales": InputTable({"id": "long", "v": now}, ("id",))}
    lake.put("sales", [(9, later)])
    made_anew = [lake.run("incremental", name).output.get("made_anew") for name in lake.pipelines]
    assert made_anew == [f"columns of the input `sales` have another type: `v` ({before} -> {now})", None]
    assert [lake.differences(name) for name in lake.pipelines] == [NOTHING, NOTHING]


def test_an_empty_text_names_no_partition_of_an_input(spark: SparkSession, tmp_path: Path) -> None:
    """Readers have it as null, as its folder says, and its files as it was written."""
    days = "SELECT coalesce(day, 'none') AS day, sum(amount) AS amount FROM sales GROUP BY coalesce(day, 'none')"
    lake = lake_of(spark, tmp_path, InputTable(SALES.columns, ("id",), "day"), pipeline_of(days, {"day": "string", "amount": "decimal(22,2)"}, ("day",), "sales"))  # fmt: skip
    lake.put("sales", [(1, "", Decimal(1)), (2, PLAIN[0], Decimal(2))])
    check_equal(lake, "bootstrap")
    lake.put("sales", [(1, "", Decimal(10))])
    check_equal(lake, "incremental")
