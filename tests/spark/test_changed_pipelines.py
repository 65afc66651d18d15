"""A pipeline whose files have changed never leaves a table with rows of two versions, whatever became of the rebuild that its registration asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ingestion.domain.pipelines.definition import Audit
from ingestion.spark.contract.report import REFUSED, SUCCEEDED
from tests.spark.pipeline_lake import NOTHING, PipelineLake
from tests.spark.test_pipelines import DAYS, lake_of

GREATEST = DAYS.transform.replace("sum(f.delay)", "max(f.delay)")


def changed(lake: PipelineLake, **facts: Any) -> PipelineLake:
    return replace(lake, pipelines={"wide": replace(lake.pipelines["wide"], **facts)})


def rows(lake: PipelineLake) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, lake.stored("wide").collect()))


def test_rows_of_another_select_are_never_mixed_with_those_of_now(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(spark, tmp_path, "days")
    other = changed(lake, transform=GREATEST)
    other.put("flights", [(100, "2013-01-02", "N1", "UA", 7)])
    before = rows(lake)

    backfill = other.run("backfill", partitions=("2013-01-02",))
    assert "cannot be recomputed: the pipeline has changed since these rows were made (SELECT)" in str(backfill.error)
    refused = changed(other, audits=(Audit("none", "rows(this) == 0"),)).run("incremental")
    assert (refused.status, rows(lake)) == (REFUSED, before)
    positions = refused.output["refused"]["position"]
    assert replace(other, skip_to=positions).run("incremental").error is None
    assert rows(lake) == before, "the changes were dropped"

    report = other.run("incremental")
    assert (report.error, report.output["made_anew"]) == (None, "the pipeline has changed since these rows were made (SELECT)")  # fmt: skip
    assert other.differences("wide") == NOTHING
    assert rows(lake) != before
    other.put("flights", [(101, "2013-01-03", "N1", "AA", 700)])
    followed = changed(other, audits=(Audit("some", "rows(this) > 0"),)).run("incremental")
    assert (followed.status, "made_anew" in followed.output) == (SUCCEEDED, False)
    assert other.run("backfill", partitions=("2013-01-02",)).error is None
    assert other.differences("wide") == NOTHING


def test_an_input_that_is_followed_again_is_read_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(spark, tmp_path, "wide")
    inputs = [replace(each, is_followed=each.name != "airlines") for each in lake.pipelines["wide"].inputs]
    ignoring = changed(lake, inputs=tuple(inputs))
    ignoring.put("airlines", [("UA", "United Airlines")])
    ignoring.put("flights", [(1, "2013-01-02", "N1", "AA", 70)])
    report = ignoring.run("incremental")
    assert (report.status, "made_anew" in report.output) == (SUCCEEDED, False)
    assert lake.differences("wide") != NOTHING
    assert lake.run("incremental").output["made_anew"] == "changes of `airlines` were ignored until now"
    assert lake.differences("wide") == NOTHING
