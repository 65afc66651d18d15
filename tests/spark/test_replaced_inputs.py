"""An input that loses what its pipeline has read: all rows are made anew, the report says why, and the next change is followed again."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import SUCCEEDED
from ingestion.spark.tables.timeline import Timeline
from tests.spark.pipeline_lake import NOTHING, InputTable, PipelineLake, pipeline_of

SALES = InputTable({"id": "long", "day": "string", "amount": "int"}, ("id",), "day")
DAYS = pipeline_of(
    "SELECT day, count(*) AS sales, sum(amount) AS amount FROM sales GROUP BY day",
    {"day": "string", "sales": "long", "amount": "long"},
    ("day",),
    "sales",
)
FIRST, SECOND = "2013-01-01", "2013-01-02"
CLEANED_AT_ONCE = {
    "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.trigger.max.commits": "1",
}


def clean_away_what_was_read(lake: PipelineLake) -> None:
    """Of the first day, whose last row goes meanwhile: only the file that is cleaned away says that it was there."""
    lake.input_options = CLEANED_AT_ONCE
    lake.remove("sales", [(1, FIRST, 0)])
    lake.remove("sales", [(2, FIRST, 0)])
    lake.put("sales", [(4, SECOND, 40)])
    lake.input_options = {}


def take_back_what_was_read(lake: PipelineLake) -> None:
    """By one of Hudi's own procedures; then other rows are written."""
    newest = Timeline(lake.uri("sales")).completed()[-1].instant
    lake.spark.sql(f"create table taken_back using hudi location '{lake.uri('sales')}'")
    try:
        lake.spark.sql(f"call rollback_to_instant(table => 'taken_back', instant_time => '{newest}')").collect()
    finally:
        lake.spark.sql("drop table taken_back")
    lake.put("sales", [(4, SECOND, 40)])


def build_anew(lake: PipelineLake) -> None:
    """Without the first day."""
    shutil.rmtree(lake.folder / "lake" / "sales")
    lake.put("sales", [(3, SECOND, 5), (4, SECOND, 40)])


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (clean_away_what_was_read, rf"files of \S+/sales that were replaced in `day={FIRST}` are cleaned away"),
        (
            take_back_what_was_read,
            r"the commit of \S+/sales that was completed at \d+ was taken back, or the table was built anew",
        ),
        (build_anew, r"the commits of \S+/sales since \d+ are archived, or the table was built anew"),
    ],
)
def test_an_input_that_lost_what_was_read_makes_all_rows_anew(
    spark: SparkSession, tmp_path: Path, happens: Callable[[PipelineLake], None], why: str
) -> None:
    lake = PipelineLake(spark, tmp_path, {"sales": SALES}, {"wide": DAYS})
    lake.put("sales", [(1, FIRST, 10), (2, FIRST, 20)])
    lake.put("sales", [(3, SECOND, 30)])
    assert lake.run("bootstrap").error is None
    happens(lake)
    assert lake.differences("wide") != NOTHING
    report = lake.run("incremental")
    assert (report.status, report.error) == (SUCCEEDED, None)
    assert re.fullmatch(why, report.output["made_anew"])
    assert lake.differences("wide") == NOTHING
    lake.put("sales", [(3, SECOND, 300)])
    report = lake.run("incremental")
    assert (report.status, report.error, "made_anew" in report.output) == (SUCCEEDED, None, False)
    assert lake.differences("wide") == NOTHING
